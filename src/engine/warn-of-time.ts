import type { Cause, PurposeEvent } from '../contract/purpose.ts';
import { warning, type Warning, type WarningCode } from '../contract/warnings.ts';
import type { LiveEvent } from './compile-event.ts';
import { describeDuration } from './duration-words.ts';
import { unnoticedGapMs } from './listening.ts';
import { isMetByAny } from './self-moving.ts';
import type { KnownSenses } from './known-senses.ts';

/**
 * Members of time and of alarms that have no effect, or hardly the one that was meant. `at`: the event's
 * JSON Pointer; `compiled`: the same event; `senses` where they are known.
 */
export function warnOfTime(
  event: PurposeEvent,
  compiled: LiveEvent,
  at: string,
  senses?: KnownSenses,
): Warning[] {
  return [
    ...warnOfNotice(event, compiled, at),
    ...warnOfAlarm(event, compiled, `${at}/actions`),
    ...event.causes.flatMap((cause, c) => [
      ...warnOfInterval(cause, `${at}/causes/${c}`, senses),
      ...warnOfSilence(cause, `${at}/causes/${c}`, senses),
    ]),
    ...warnOfAge(event, at),
  ];
}

/** Measurements are dropped beside newer ones: of this cause, or of another one. */
function warnOfAge({ causes }: PurposeEvent, at: string): Warning[] {
  const [only, ...others] = causes;
  const { maxAgeMs, count = 1, forMs } = only?.threshold ?? {};
  const windowLength = Math.max(count, only?.measurement?.count ?? 0);
  if (maxAgeMs === undefined || others.length > 0 || windowLength > 1 || forMs !== undefined)
    return [];
  const what = 'it has no effect: the event has one cause, which looks at one measurement';
  return [warning('no-effect', `${at}/causes/0/threshold/maxAgeMs`, what)];
}

/** What waits for silence fires where nothing could be measured, and where nobody listened for a short time. */
function warnOfSilence(
  { sId, threshold }: Cause,
  at: string,
  senses: KnownSenses | undefined,
): Warning[] {
  const { noneForMs } = threshold ?? {};
  if (noneForMs === undefined) return [];
  const warnings: Warning[] = [];
  if (noneForMs <= unnoticedGapMs) {
    const what = 'it may hold though the device sent: the service may be away for 15 s unnoticed';
    warnings.push(warning('short-silence', `${at}/threshold/noneForMs`, what));
  }
  if (senses && !senses.ranges.has(sId)) {
    const what = `no chosen device has the sense ${sId}: it is always silent`;
    warnings.push(warning('always-silent', `${at}/sId`, what));
  }
  return warnings;
}

/** A notice at each firing may be meant (a button), or not (a forgotten threshold). One that moves is told once. */
function warnOfNotice({ actions }: PurposeEvent, event: LiveEvent, path: string): Warning[] {
  if (event.tells !== 'notice' || actions.alarm === false) return [];
  if (!isMetByAny(event) || !staysHere(event)) return [];
  const what = 'people are told at each firing: any measurement meets its causes';
  return [warning('told-each-time', path, what)];
}

/** A move to another purpose may lead to a state of the same number. */
function staysHere({ target, stId }: LiveEvent): boolean {
  return target === null || (target.place.stId === stId && !target.entersPurpose);
}

function warnOfAlarm({ actions }: PurposeEvent, event: LiveEvent, at: string): Warning[] {
  const { alarm, keepMs, repeatMs } = actions;
  const { tells } = event;
  const warnings: Warning[] = [];
  const warn = (code: WarningCode, member: string, what: string) =>
    void warnings.push(warning(code, `${at}/${member}`, what));
  if (alarm === true && isMetByAny(event) && staysHere(event))
    warn(
      'endless-alarm',
      'alarm',
      'no measurement ends this alarm: any measurement meets its causes',
    );
  const none =
    tells === 'notice' ? 'a notice is told once, and not kept' : 'nobody is told of this event';
  if (repeatMs !== undefined && tells !== 'alarm')
    warn('no-effect', 'repeatMs', `it has no effect: ${none}`);
  const isKept = tells === 'alarm' || tells === 'silent-alarm';
  if (keepMs !== undefined && !isKept) warn('no-effect', 'keepMs', `it has no effect: ${none}`);
  return warnings;
}

/** A time that is shorter than the pause between two measurements says something else than it seems to. */
function warnOfInterval(
  { sId, threshold, measurement }: Cause,
  at: string,
  senses: KnownSenses | undefined,
): Warning[] {
  const intervalMs = Math.max(measurement?.interval ?? 0, senses?.slowest.get(sId) ?? 0);
  const { forMs, noneForMs } = threshold ?? {};
  const every = `${sId} is measured every ${describeDuration(intervalMs)}`;
  if (forMs !== undefined && forMs < intervalMs) {
    const what = `it is shorter than the interval (${every}): one measurement is enough for it`;
    return [warning('shorter-than-interval', `${at}/threshold/forMs`, what)];
  }
  if (noneForMs !== undefined && noneForMs <= intervalMs) {
    const what = `it is no longer than the interval (${every}): each pause is such a silence`;
    return [warning('shorter-than-interval', `${at}/threshold/noneForMs`, what)];
  }
  return [];
}
