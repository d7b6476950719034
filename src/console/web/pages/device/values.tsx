import { useRef } from 'preact/hooks';
import { useLatest } from '../../api/measurements.ts';
import type { LatestView, Sense } from '../../api/types.ts';
import { Answered } from '../../parts/panel.tsx';
import { nameOfSense } from '../../api/devices.ts';
import { Ago } from '../../parts/status.tsx';
import { formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { isBeyond } from '../alarms/about.ts';
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
                        <Value
                          key={value.ts}
                          text={shownAs(value, sense)}
                          isNew={isNew(value)}
                          isBeyond={isBeyond(value)}
                        />
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
