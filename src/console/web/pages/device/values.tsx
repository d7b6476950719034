import { useRef } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { listRejections, nameOfSense } from '../../api/devices.ts';
import { useLatest } from '../../api/measurements.ts';
import type { LatestView, Sense } from '../../api/types.ts';
import { Answered } from '../../parts/panel.tsx';
import { unitOf } from '../../parts/rejections.tsx';
import { Ago } from '../../parts/status.tsx';
import { formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { isBeyond } from '../alarms/about.ts';
import { kindOf } from './chart/points.ts';

const everyMs = 15_000;

/** A remark that is repeated is counted once a minute: until then it may be about the newest value, too. */
const remarkMs = 60_000;

/** The newest value of each sense, and the unit that the device sent with it if that is another. */
export function Values({ uuid, senses }: { uuid: string; senses: ReadonlyMap<string, Sense> }) {
  const query = useLatest([uuid]);
  const { data: rejections = [] } = useQuery(
    `newest-rejections/${uuid}`,
    (signal) => listRejections(uuid, signal),
    { everyMs },
  );
  // A number of another unit looks like any other.
  const sent = new Map(
    rejections.toReversed().flatMap((rejection) => {
      const unit = unitOf(rejection, senses);
      return unit?.isWrong
        ? [[unit.sId, { unit: unit.sent, ts: rejection.timestamp }] as const]
        : [];
    }),
  );
  const first = useRef<ReadonlyMap<string, number>>(null);
  if (query.data && !first.current)
    first.current = new Map(query.data.map(({ sId, ts }) => [sId, ts]));
  // Values from when the page opened are not changes.
  const isNew = ({ sId, ts }: LatestView) => first.current?.get(sId) !== ts;
  return (
    <section aria-label={t('device.values')}>
      <Answered query={query} lines={2}>
        {(latest) => {
          const known = new Map(latest.map((each) => [each.sId, each]));
          const sIds = [...new Set([...senses.keys(), ...known.keys()])];
          return (
            <ul class="cards">
              {sIds.map((sId) => {
                const sense = senses.get(sId);
                const value = known.get(sId);
                return (
                  <li key={sId} class="card">
                    <p class="card-name">{nameOfSense(sId, sense)}</p>
                    {value ? (
                      <>
                        <Value
                          key={value.ts}
                          text={shownAs(value, sense)}
                          isNew={isNew(value)}
                          isBeyond={isBeyond(value)}
                        />
                        {(sent.get(sId)?.ts ?? 0) > value.ts - remarkMs && (
                          <p class="fine beyond">
                            {t('device.sentAs', { unit: sent.get(sId)?.unit ?? '' })}
                          </p>
                        )}
                        <p class="fine">
                          <Ago ts={value.ts} />
                        </p>
                      </>
                    ) : (
                      <p class="card-none">{t('device.noValue')}</p>
                    )}
                  </li>
                );
              })}
            </ul>
          );
        }}
      </Answered>
    </section>
  );
}

/** A switch in words, as the chart does, not as 0 and 1. */
function shownAs({ val }: LatestView, sense: Sense | undefined): string {
  const isSwitch = kindOf(sense, { points: [] }) === 'switch' && (val === 0 || val === 1);
  return isSwitch ? t(val === 1 ? 'chart.on' : 'chart.off') : formatValue(val, sense);
}

type ValueProps = { text: string; isNew: boolean; isBeyond: boolean };

/** The style fits it into its card by its length. A new value is briefly highlighted. */
function Value({ text, isNew, isBeyond: isBad }: ValueProps) {
  const name = ['value', isNew ? 'value-new' : '', isBad ? 'beyond' : ''].join(' ').trim();
  return (
    <p class={name} style={{ '--letters': text.length }}>
      {text}
    </p>
  );
}
