import type { Profile } from '../../engine/compile.ts';
import { cutText } from '../../contract/sizes.ts';
import { startRuntime } from '../../engine/runtime.ts';
import type { ProfileAnswer } from '../../contract/uplink.ts';
import type { DeviceContext } from './device-context.ts';
import { recordMove } from './record-event.ts';
import type { MessageScope } from './scope.ts';
import { makesAlarms, signal } from './signal.ts';

/** A device's answer to a profile; counts only for the profile that is pending, or current. */
export function applyAnswer(
  context: DeviceContext,
  given: ProfileAnswer,
  scope: MessageScope,
): DeviceContext {
  const answer = withShortText(context, given, scope);
  const answering = { ...context, answersProfiles: true };
  const { pending, current } = context;
  if (pending?.pId === answer.pId) {
    scope.outcome?.store();
    return answer.state === 'current'
      ? becomeCurrent(answering, pending, answer, scope)
      : refuse({ ...answering, pending: null }, answer, scope);
  }
  if (current?.profile.pId === answer.pId) {
    if (answer.state === 'current') return confirm(answering, answer, scope);
    scope.outcome?.store();
    return refuse({ ...endAlarms(answering, scope), current: null, runtime: null }, answer, scope);
  }
  const waiting = pending
    ? `${pending.pId} is the one that waits for an answer`
    : 'none waits for an answer';
  const message = `Profile ${answer.pId} is not pending here: ${waiting}.`;
  scope.reject({ reason: 'unknown-profile', message, path: '/pId' });
  return answering;
}

/** The text of an answer is cut: the answer counts, however long it is. */
function withShortText(
  { device }: DeviceContext,
  answer: ProfileAnswer,
  { limits }: MessageScope,
): ProfileAnswer {
  const sizes = limits.sizesOf?.(device.accountId);
  if (answer.text === undefined || !sizes) return answer;
  return { ...answer, text: cutText(answer.text, sizes.textLength) };
}

/** From now on the device answers profiles itself; what is pending, or current without its answer, is sent. */
export function applyRequest(
  context: DeviceContext,
  { rows, outcome }: Pick<MessageScope, 'rows' | 'outcome'>,
): DeviceContext {
  if (context.answersProfiles) outcome?.repeat();
  else outcome?.store();
  rows.effects.push({ kind: 'hand-over', device: context.device });
  return context.answersProfiles ? context : { ...context, answersProfiles: true };
}

/** The profile runs: the device stands in its first purpose's initial state. Silences count from `sinceTs` on. */
export function becomeCurrent(
  context: DeviceContext,
  profile: Profile,
  { engine = 'service', text }: Pick<Partial<ProfileAnswer>, 'engine' | 'text'>,
  scope: MessageScope,
  sinceTs: number = scope.arrivedTs,
): DeviceContext {
  const { deviceId } = context.device;
  const ts = scope.arrivedTs;
  scope.rows.profiles.push({ deviceId, pId: profile.pId, state: 'current', engine, text, ts });
  const runtime = startRuntime(profile, sinceTs);
  const place = { puId: runtime.puId, stId: runtime.stId };
  const running: DeviceContext = {
    ...endAlarms(context, scope),
    current: { profile, engine },
    pending: null,
    pendingTs: null,
    runtime,
  };
  if (place.puId !== context.place.puId) recordMove(running, place, { ts }, scope);
  return { ...running, place, placeTs: ts, reported: null };
}

/** A device that was a plain sensor answers the profile that is current already, or answers it once more. */
function confirm(
  context: DeviceContext,
  answer: ProfileAnswer,
  scope: MessageScope,
): DeviceContext {
  const { rows, arrivedTs } = scope;
  const { current } = context;
  const engine = answer.engine ?? 'service';
  if (!current || current.engine === engine) {
    scope.outcome?.repeat();
    return context;
  }
  scope.outcome?.store();
  const { deviceId } = context.device;
  const pId = current.profile.pId;
  rows.profiles.push({ deviceId, pId, state: 'current', engine, text: answer.text, ts: arrivedTs });
  const ended = engine === 'device' ? endAlarms(context, scope) : context;
  return { ...ended, current: { ...current, engine } };
}

/** Alarms end with the profile that made them, and with who evaluated it. */
function endAlarms(context: DeviceContext, scope: MessageScope): DeviceContext {
  if (!makesAlarms(context)) return context;
  signal(context, { kind: 'profile' }, scope);
  return { ...context, waitingSenses: null };
}

function refuse(
  context: DeviceContext,
  { pId, text }: ProfileAnswer,
  { rows, arrivedTs: ts }: MessageScope,
): DeviceContext {
  const { deviceId } = context.device;
  rows.profiles.push({ deviceId, pId, state: 'rejected', engine: undefined, text, ts });
  return context;
}
