import { findNextDue } from '../rules/due.ts';
import type { DueRow } from '../rules/due.ts';
import type { DeviceContext } from '../rules/device-context.ts';
import type { Unit } from '../rules/message.ts';
import type { ApplyLimits } from '../rules/scope.ts';

/** A tick that leaves something due at once comes again after this, in ms: it waits for what time does not bring. */
const againMs = 10_000;

/** When the last of these messages arrived that is a tick; null: none is. */
export function tickedTs(units: readonly Unit[]): number | null {
  const last = units.findLast(({ content }) => content.kind === 'tick');
  return last?.message.uplink.arrivedTs ?? null;
}

/**
 * The device with its next due time, and how its row is to change: after a tick in any case, after messages
 * where the time is earlier. A row that is early costs a tick that finds nothing; one at each change of the
 * time would cost a write with each message.
 */
export function planDue(
  before: DeviceContext,
  after: DeviceContext,
  ticked: number | null,
  limits: ApplyLimits,
): { context: DeviceContext; row: DueRow | null } {
  if (ticked === null && after.runtime === before.runtime && after.current === before.current)
    return { context: after, row: null };
  const next = findNextDue(after, limits);
  if (ticked === null && (next === null || (after.dueTs !== null && next >= after.dueTs)))
    return { context: after, row: null };
  const isStuck = ticked !== null && next !== null && next <= ticked;
  const dueTs = isStuck ? ticked + againMs : next;
  const { deviceId, accountId } = after.device;
  return { context: { ...after, dueTs }, row: { deviceId, accountId, dueTs } };
}
