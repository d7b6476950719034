import { useQuery } from '../../../api/cache.ts';
import { listLate } from '../../../api/measurements.ts';
import { ApiError } from '../../../api/request.ts';
import type { LateSense, Sense } from '../../../api/types.ts';
import { now } from '../../../app/now.ts';
import { formatDuration, formatTime, formatTyped, formatValue } from '../../../text/format.ts';
import { count, t } from '../../../text/t.ts';
import type { Span } from './points.ts';
import { type Range, readRange } from './series.ts';

/**
 * The senses of a device with late values in the range. It is asked once for a range, because the service reads each
 * value for it; of a range with too many it does not, and then nothing is said.
 */
export function useLate(uuid: string, { name, start, end }: Range): readonly LateSense[] {
  const key = name ?? `${start}-${end}`;
  const { data = [] } = useQuery(`late/${uuid}/${key}`, async (signal) => {
    try {
      return (await listLate(uuid, readRange(now()), signal)).filter(({ late }) => late > 0);
    } catch (error) {
      if (error instanceof ApiError) return [];
      throw error;
    }
  });
  return data;
}

/** When late values were beyond a limit, and nobody judged them. */
export const lateSpans = (late: LateSense | undefined): Span[] =>
  (late?.limits ?? []).flatMap(({ runs }) =>
    runs.map(({ fromTs, toTs }) => ({ start: fromTs, end: toTs })),
  );

const mostRuns = 5;

/** Says that values came late and were compared with no limit, and what the limits would have marked. */
export function LateValues({ late, sense }: { late: LateSense; sense: Sense | undefined }) {
  const { firstTs = 0, lastTs = 0, lastArrivedTs = 0, limits } = late;
  const runs = limits.flatMap(({ runs, moreRuns = 0, ...limit }) => ({ runs, moreRuns, limit }));
  const all = runs.flatMap(({ runs, limit }) => runs.map((run) => ({ ...run, limit })));
  const more = all.length - mostRuns + runs.reduce((sum, { moreRuns }) => sum + moreRuns, 0);
  const time = (ts: number) => formatTime(ts);
  return (
    <div class="late">
      <p>
        {count('late.values', late.late)}{' '}
        {t('late.when', { first: time(firstTs), last: time(lastTs), arrived: time(lastArrivedTs) })}{' '}
        {all.length === 0 && t('late.within')}
      </p>
      {all.length > 0 && (
        <>
          <p>{t('late.beyond')}</p>
          <ul>
            {all
              .slice(0, mostRuns)
              .map(({ fromTs, toTs, values, extreme, limit: { eventName, above, below } }) => (
                <li key={`${eventName}/${fromTs}`}>
                  <strong>{eventName}</strong>{' '}
                  {t(above === undefined ? 'event.below' : 'event.above', {
                    limit: formatTyped(above ?? below ?? 0, { unit: sense?.unit }),
                  })}
                  {': '}
                  {values === 1
                    ? t('late.one', { from: time(fromTs) })
                    : t('alarms.lasted', {
                        from: time(fromTs),
                        to: time(toTs),
                        time: formatDuration(toTs - fromTs),
                      })}
                  {', '}
                  {t(above === undefined ? 'alarms.least' : 'alarms.most', {
                    value: formatValue(extreme.val, sense),
                  })}
                </li>
              ))}
          </ul>
          {more > 0 && <p class="fine">{count('fleet.more', more)}</p>}
        </>
      )}
    </div>
  );
}
