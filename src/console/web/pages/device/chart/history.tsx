import { useState } from 'preact/hooks';
import { useKnownLatest } from '../../../api/measurements.ts';
import type { Sense } from '../../../api/types.ts';
import { queryOf } from '../../../app/router.ts';
import { Answered, Empty } from '../../../parts/panel.tsx';
import { nameOfSense } from '../../../parts/senses.ts';
import { t } from '../../../text/t.ts';
import type { CurrentProfile } from '../tab.ts';
import { CsvButton } from './csv-button.tsx';
import { Lanes } from './lanes.tsx';
import { placesOf } from './places.ts';
import { Positions } from './positions.tsx';
import { Ranges, Zooms } from './ranges.tsx';
import { showSpan } from './range.ts';
import type { Span } from './span.ts';
import { SenseChoice, shownOf } from './sense-choice.tsx';
import type { Series } from './point.ts';
import { SenseChart } from './sense-chart.tsx';
import { useHistory } from './use-history.ts';

type HistoryProps = {
  uuid: string;
  senses: ReadonlyMap<string, Sense>;
  /** null: none is installed. */
  profile: CurrentProfile | null;
};

/** What was measured and what happened, over one range of time. */
export function History({ uuid, senses, profile }: HistoryProps) {
  const { range, series, happened } = useHistory(uuid);
  const [preview, setPreview] = useState<Span | null>(null);
  const span = preview ?? range;
  const isLocated = placesOf(useKnownLatest(uuid)).length > 0;
  const nameOf = (sId: string) => nameOfSense(sId, senses.get(sId));
  return (
    <section class="panel history" aria-labelledby="history">
      <div class="panel-head">
        <h2 id="history">{t('device.history')}</h2>
        <Ranges range={range} />
        <Zooms range={range} />
      </div>
      <Answered query={series} lines={6}>
        {(loaded) => {
          const all = inOrder(loaded, senses);
          const shown = shownOf(all, queryOf('senses'));
          const alarms = happened.data?.alarms ?? [];
          return (
            <>
              {all.length > 1 && <SenseChoice all={all} shown={shown} nameOf={nameOf} />}
              {all.length === 0 && !isLocated && <Nothing isZoomed={range.name === null} />}
              {shown.map((each) => (
                <SenseChart
                  key={each.sId}
                  name={nameOf(each.sId)}
                  sense={senses.get(each.sId)}
                  series={each}
                  span={span}
                  profile={profile}
                  alarms={alarms}
                  onZoom={showSpan}
                  onPreview={setPreview}
                />
              ))}
              <Answered query={happened} lines={2}>
                {(data) => <Lanes happened={data} span={span} senses={senses} profile={profile} />}
              </Answered>
              <Positions uuid={uuid} range={range} senses={senses} profile={profile} />
              {all.length > 0 && (
                <div class="chart-foot">
                  <p class="fine" id="chart-keys">
                    <span class="hint-keys">{t('chart.hint')}</span>
                    <span class="hint-touch">{t('chart.hintTouch')}</span>
                  </p>
                  <CsvButton uuid={uuid} series={shown} senses={senses} span={range} />
                </div>
              )}
            </>
          );
        }}
      </Answered>
    </section>
  );
}

/** As the configuration has them. */
function inOrder(all: readonly Series[], senses: ReadonlyMap<string, Sense>): readonly Series[] {
  const order = [...senses.keys()];
  return all.toSorted((one, other) => order.indexOf(one.sId) - order.indexOf(other.sId));
}

function Nothing({ isZoomed }: { isZoomed: boolean }) {
  return isZoomed ? (
    <Empty icon="pulse" title={t('device.noHistory')} />
  ) : (
    <Empty icon="pulse" title={t('device.noHistory')} hint={t('device.nothingHint')} />
  );
}
