import type { Cause, PurposeEvent } from '../contract/purpose.ts';
import type { Problem } from '../errors.ts';
import type { LiveEvent } from './compile-event.ts';
import { describeDuration } from './duration-words.ts';
import { isMetByAny } from './self-moving.ts';
import type { KnownSenses } from './unfireable.ts';

/**
 * Members of time and of alarms that have no effect, or hardly the one that was meant. `at`: the event's
 * JSON Pointer; `compiled`: the same event; `senses` where they are known.
 */
export function warnOfTime(
  event: PurposeEvent,
  compiled: LiveEvent,
  at: string,
  senses?: KnownSenses,
): Problem[] {
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
function warnOfAge({ causes }: PurposeEvent, at: string): Problem[] {
  const [only, ...others] = causes;
  const { maxAgeMs, count = 1, forMs } = only?.threshold ?? {};
  const windowLength = Math.max(count, only?.measurement?.count ?? 0);
  if (maxAgeMs === undefined || others.length > 0 || windowLength > 1 || forMs !== undefined)
    return [];
  const message = 'it has no effect: the event has one cause, which looks at one measurement';
  return [{ path: `${at}/causes/0/threshold/maxAgeMs`, message }];
}

/** What waits for silence fires where there is nothing that could be measured. */
function warnOfSilence(
  { sId, threshold }: Cause,
  at: string,
  senses: KnownSenses | undefined,
): Problem[] {
  if (threshold?.noneForMs === undefined || !senses || senses.ranges.has(sId)) return [];
  return [
    { path: `${at}/sId`, message: `no chosen device has the sense ${sId}: it is always silent` },
  ];
}

/** A notice at each firing may be meant (a button), or not (a forgotten threshold). One that moves is told once. */
function warnOfNotice({ actions }: PurposeEvent, event: LiveEvent, path: string): Problem[] {
  if (event.tells !== 'notice' || actions.alarm === false) return [];
  if (!isMetByAny(event) || !staysHere(event)) return [];
  const message =
    'people are told at each firing: any measurement meets its causes. If that is meant, set ' +
    'actions.alarm to false';
  return [{ path, message }];
}

/** A move to another purpose may lead to a state of the same number. */
function staysHere({ target, stId }: LiveEvent): boolean {
  return target === null || (target.place.stId === stId && !target.entersPurpose);
}

function warnOfAlarm({ actions }: PurposeEvent, event: LiveEvent, at: string): Problem[] {
  const { alarm, keepMs, repeatMs } = actions;
  const { tells } = event;
  const warnings: Problem[] = [];
  const warn = (member: string, message: string) =>
    void warnings.push({ path: `${at}/${member}`, message });
  if (alarm === true && isMetByAny(event) && staysHere(event))
    warn('alarm', 'no measurement ends this alarm: any measurement meets its causes');
  const none =
    tells === 'notice' ? 'a notice is told once, and not kept' : 'nobody is told of this event';
  if (repeatMs !== undefined && tells !== 'alarm') warn('repeatMs', `it has no effect: ${none}`);
  const isKept = tells === 'alarm' || tells === 'silent-alarm';
  if (keepMs !== undefined && !isKept) warn('keepMs', `it has no effect: ${none}`);
  return warnings;
}

/** A time that is shorter than the pause between two measurements says something else than it seems to. */
function warnOfInterval(
  { sId, threshold, measurement }: Cause,
  at: string,
  senses: KnownSenses | undefined,
): Problem[] {
  const intervalMs = Math.max(measurement?.interval ?? 0, senses?.slowest.get(sId) ?? 0);
  const { forMs, noneForMs } = threshold ?? {};
  const every = `${sId} is measured every ${describeDuration(intervalMs)}`;
  if (forMs !== undefined && forMs < intervalMs) {
    const message = `it is shorter than the interval (${every}): one measurement is enough for it`;
    return [{ path: `${at}/threshold/forMs`, message }];
  }
  if (noneForMs !== undefined && noneForMs <= intervalMs) {
    const message = `it is no longer than the interval (${every}): each pause is such a silence`;
    return [{ path: `${at}/threshold/noneForMs`, message }];
  }
  return [];
}
