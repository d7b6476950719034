import { findDeviceDue } from '../rules/due.ts';
import type { DueRow } from '../rules/due.ts';
import type { DeviceContext } from '../rules/device-context.ts';
import type { Unit } from '../rules/message.ts';
import type { ApplyLimits } from '../rules/scope.ts';

/** Between a tick and the next one, ms. */
const leastMs = 500;

/** When the last of these messages arrived that is a tick; null: none is. */
export function tickedTs(units: readonly Unit[]): number | null {
  const last = units.findLast(({ content }) => content.kind === 'tick');
  return last?.message.uplink.arrivedTs ?? null;
}

/**
 * The device with its next due time, and how its row is to change: after a tick in any case, after messages
 * where the time is earlier. A row that is early costs a tick that finds nothing; one at each change of the
 * time would cost a write with each message. `cost`: what it took (`Budget`).
 */
export function planDue(
  before: DeviceContext,
  after: DeviceContext,
  { arrivedTs, isTick }: { arrivedTs: number; isTick: boolean },
  limits: ApplyLimits,
): { context: DeviceContext; row: DueRow | null; cost: number } {
  if (!isTick && after.runtime === before.runtime && after.current === before.current)
    return { context: after, row: null, cost: 0 };
  const { ts: next, earliest: earliestDue, cost } = findDeviceDue(after, arrivedTs, limits);
  if (!isTick && (next === null || (after.dueTs !== null && next >= after.dueTs)))
    return { context: { ...after, earliestDue }, row: null, cost };
  const dueTs = next === null ? null : Math.max(next, arrivedTs + leastMs);
  const { deviceId, accountId } = after.device;
  return { context: { ...after, dueTs, earliestDue }, row: { deviceId, accountId, dueTs }, cost };
}
