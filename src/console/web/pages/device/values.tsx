import { useRef } from 'preact/hooks';
import { useLatest } from '../../api/measurements.ts';
import type { LatestView, Sense } from '../../api/types.ts';
import { Answered } from '../../parts/panel.tsx';
import { nameOfSense } from '../../api/devices.ts';
import { Ago } from '../../parts/status.tsx';
import { formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { kindOf } from './chart/points.ts';

/** The newest value of each sense. */
export function Values({ uuid, senses }: { uuid: string; senses: ReadonlyMap<string, Sense> }) {
  const query = useLatest([uuid]);
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
                        <p key={value.ts} class={classOf(value, isNew(value))}>
                          {shownAs(value, sense)}
                        </p>
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

/** A position needs more space. A new value is briefly highlighted. */
const classOf = ({ val }: LatestView, isNew: boolean) =>
  ['value', typeof val === 'number' ? '' : 'value-long', isNew ? 'value-new' : ''].join(' ').trim();
