import type { CauseSense, SenseEvent } from '../../contract/event.ts';
import { lastOf } from '../../contract/measurement.ts';
import type { DeviceContext } from './device-context.ts';

type Known = Pick<DeviceContext, 'watched' | 'seen' | 'clocks'>;

/** Adds the newest stored value of each silent sense to what an event that fired tells of its causes. */
export function addSilentSenses(context: Known, { cause, why = [] }: SenseEvent): void {
  if (!why.some(({ silentMs }) => silentMs !== undefined)) return;
  // Those of the other causes stand in the order of these.
  const others = cause.senses.values();
  cause.senses = why.flatMap(({ sId, silentMs }) => {
    const sense = silentMs === undefined ? others.next().value : findNewest(context, sId);
    return sense ? [sense] : [];
  });
}

function findNewest({ watched, seen, clocks }: Known, sId: string): CauseSense | null {
  const clock = clocks?.get(sId);
  const number = watched.get(sId);
  const last = number === undefined ? undefined : seen.get(number);
  const ts = clock?.newestTs ?? last?.ts;
  const val = clock ? clock.newestVal : lastOf(last);
  if (ts === undefined || val === undefined) return null;
  return typeof val === 'number' ? { sId, val, ts } : { sId, val: 0, ts, ...val };
}
