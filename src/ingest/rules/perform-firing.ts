import { messagesOf } from '../../contract/actions.ts';
import type { FiredSignal } from '../../contract/alarm-signal.ts';
import type { Place } from '../../contract/place.ts';
import type { Downlink } from '../../contract/uplink.ts';
import type { Firing } from '../../engine/outcome.ts';
import { costs } from './model.ts';
import type { DeviceContext } from './device-context.ts';
import { recordEvent } from './record-event.ts';
import type { MessageScope } from './scope.ts';
import { describe, signal } from './signal.ts';
import { addSilentSenses } from './silent-senses.ts';

/** The actions of an event that fired, as rows and effects. */
export function performFiring(
  context: DeviceContext,
  firing: Firing,
  movedTo: Place | null,
  scope: MessageScope,
): DeviceContext {
  const { event, actions, name, record, tells } = firing;
  const { device } = context;
  scope.budget.spent += costs.firing + costs.firingCause * event.cause.senses.length;
  addSilentSenses(context, event);
  if (record) recordEvent(context, event, scope);
  for (const message of messagesOf(actions, { device, event, name })) {
    scope.rows.effects.push({ kind: 'down', uuid: device.uuid, message });
    if (message.topic === 'display') keepDisplay(firing, device.deviceId, message, scope);
  }
  if (tells === 'nobody') return context;
  scope.budget.spent += costs.alarm;
  return signalFiring(context, firing, movedTo, scope);
}

const dayMs = 86_400_000;

/** For a device that is not there, or loses it on the way. What a backlog brings of another day is not kept. */
function keepDisplay(
  { event, actions }: Firing,
  deviceId: number,
  message: Downlink,
  { rows, arrivedTs, budget }: MessageScope,
): void {
  const { puId, stId } = event.cause.engine;
  const text = actions.display?.showText;
  if (text === undefined || event.ts < arrivedTs - dayMs) return;
  const key = `${deviceId} ${puId} ${stId}`;
  // Behind the other states' texts, which are older now.
  if (!rows.displays.delete(key)) budget.spent += costs.display;
  rows.displays.set(key, { deviceId, puId, stId, text, ts: event.ts, message });
}

function signalFiring(
  context: DeviceContext,
  { event, record, isFirst, ageMs }: Firing,
  movedTo: Place | null,
  scope: MessageScope,
): DeviceContext {
  const { current, place } = context;
  const { puId, stId, evId } = event.cause.engine;
  const described = current && describe(current.profile, { puId, stId, evId });
  if (!described) return context;
  const isFresh = ageMs <= scope.limits.ringMaxAgeMs;
  const arrivedTs = event.arrivedTs ?? scope.arrivedTs;
  const of = { isFirst, isFresh, isRecorded: record, from: place, movedTo, arrivedTs };
  signal(context, { kind: 'fired', ...described, event, ...of }, scope);
  return isFresh ? context : waitFor(context, described);
}

/** An alarm that is too old to be told is told with the next fresh measurement of one of its senses. */
export function waitFor(
  context: DeviceContext,
  { sIds, tells }: Pick<FiredSignal, 'sIds' | 'tells'>,
): DeviceContext {
  const { waitingSenses: before } = context;
  if (tells !== 'alarm' || sIds.every((sId) => before?.has(sId))) return context;
  return { ...context, waitingSenses: new Set([...(before ?? []), ...sIds]) };
}
