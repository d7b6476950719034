import type { Sense } from '../contract/configuration.ts';
import {
  type Cause,
  listCauses,
  type Purpose,
  type PurposeEvent,
  type PurposePath,
} from '../contract/purpose.ts';
import type { Place, Position } from '../contract/values.ts';
import { maxWarnings, warning, type Warning, type WarningCode } from '../contract/warnings.ts';
import { shorterWay } from './arithmetic.ts';
import { purposesPath } from './check.ts';
import {
  alternativesOf,
  type CompiledCause,
  type CompiledPurpose,
  compileProfile,
  type DeviceSenses,
  knownSenses,
  type KnownSenses,
  type LiveEvent,
  type Profile,
} from './compile.ts';
import { describeDuration } from './explain.ts';
import { unnoticedGapMs } from './last-seen.ts';
import { canAgree, maxTried } from './thresholds.ts';

/** Warnings of a part of a profile. `size`: what finding them took, in microseconds or so. */
type WarnedPart = { size: number; warnings: Warning[] };

/**
 * Lists what is valid but probably not meant: unreachable purposes and states, events that can never fire, two states
 * that move a device back and forth by themselves, members without effect. To check a single purpose, pass it alone,
 * with `() => ''` as `pathOf`. `devices`: the senses of each chosen device, if known.
 */
export function listWarnings(
  purposes: Purpose[],
  devices?: DeviceSenses,
  pathOf: PurposePath = purposesPath,
): Warning[] {
  return [...warnInParts(purposes, devices, pathOf)].flatMap(({ warnings }) => warnings);
}

/** The same part by part, so that the caller can stop early or do other work in between. */
function* warnInParts(
  purposes: Purpose[],
  devices?: DeviceSenses,
  pathOf: PurposePath = purposesPath,
): Generator<WarnedPart> {
  const profile = compileProfile('', purposes);
  const senses = devices && knownSenses(devices);
  yield { size: 1_000_000, warnings: [] };
  const reached = reach(profile);
  for (const [index, purpose] of purposes.entries()) {
    const path = pathOf(index);
    if (!reached.purposes.has(purpose.puId)) {
      yield one('unreachable-purpose', path, 'no event of the profile leads to this purpose');
    }
    for (const [s, { stId, isGlobal, events }] of purpose.states.entries()) {
      const place = { puId: purpose.puId, stId };
      const at = `${path}/states/${s}`;
      if (!isGlobal && !reached.states.has(placeKey(place))) {
        yield one('unreachable-state', at, 'nothing leads to this state');
      }
      for (const [e, event] of eventsAt(profile, place).entries()) {
        const inEvent = `${at}/events/${e}`;
        for (const [group, causes] of alternativesOf(event).entries()) {
          const [who, where] = event.groups
            ? ['the causes of this group never all hold', `${inEvent}/anyOf/${group}`]
            : ['this event can never fire', inEvent];
          for (const { size, reason } of whyUnfireable(causes, senses))
            yield reason === null
              ? { size, warnings: [] }
              : one(reason.code, where, `${who}: ${reason.what}`, size);
        }
        for (const what of swings(profile, place, event))
          yield one('back-and-forth', inEvent, what);
        const given = events[e];
        if (given) yield { size: 1, warnings: warnOfTime(given, event, inEvent, senses) };
      }
    }
  }
}

function one(code: WarningCode, path: string, what: string, size = 1): WarnedPart {
  return { size, warnings: [warning(code, path, what)] };
}

function eventsAt(profile: Profile, { puId, stId }: { puId: number; stId: number }): LiveEvent[] {
  return profile.purposes.get(puId)?.states.get(stId)?.events ?? [];
}

/** Reported once per pair, at the event of the state that comes first. */
function swings(
  profile: Profile,
  from: { puId: number; stId: number },
  event: LiveEvent,
): string[] {
  const move = selfMoveOf(event);
  if (!move || placeKey(move.to) <= placeKey(from)) return [];
  const back = eventsAt(profile, move.to).map(selfMoveOf);
  // One on silence and one on any measurement is the usual way to watch for a silent sense.
  if (!back.some((it) => it?.on === move.on && placeKey(it.to) === placeKey(from))) return [];
  const when = move.on === 'any' ? 'on any measurement' : 'while nothing is measured';
  return [`this state and state ${move.to.stId} move a device back and forth ${when}`];
}

/** The purposes and states that the profile's own moves can reach. */
type Reachable = { purposes: ReadonlySet<number>; states: ReadonlySet<string> };

function placeKey({ puId, stId }: Place): string {
  return `${puId}/${stId}`;
}

/**
 * Follows every move from the profile's first state. It also follows unreachable purposes from their initial states,
 * so that not all of their states are reported too.
 */
function reach(profile: Profile): Reachable {
  const purposes = new Set<number>();
  const states = new Set<string>();
  follow(profile, profile.first, purposes, states);
  const reachedPurposes = new Set(purposes);
  for (const { puId, initStId } of profile.purposes.values()) {
    if (!purposes.has(puId)) follow(profile, { puId, stId: initStId }, purposes, states);
  }
  return { purposes: reachedPurposes, states };
}

function follow(profile: Profile, start: Place, purposes: Set<number>, states: Set<string>): void {
  const waiting = [start];
  for (let place = waiting.pop(); place; place = waiting.pop()) {
    const purpose = profile.purposes.get(place.puId);
    if (!purpose || states.has(placeKey(place))) continue;
    states.add(placeKey(place));
    const global = purposes.has(place.puId) ? [] : purpose.globalEvents;
    purposes.add(place.puId);
    waiting.push(...targetsOf([...global, ...eventsOf(purpose, place)]));
  }
}

function eventsOf(purpose: CompiledPurpose, { stId }: Place): LiveEvent[] {
  return purpose.states.get(stId)?.events ?? [];
}

function targetsOf(events: LiveEvent[]): Place[] {
  return events.flatMap(({ target }) => (target ? [target.place] : []));
}

/** Why an event never fires. */
type Never = { code: WarningCode; what: string };

/** Why a cause is never met; null if it can be. `size`: what finding out took, in microseconds or so. */
type JudgedCause = { size: number; reason: Never | null };

/** Judges each cause of an event, or of a group. `senses`: if known. */
function* whyUnfireable(
  causes: readonly CompiledCause[],
  senses?: KnownSenses,
): Generator<JudgedCause> {
  if (causes.length === 0)
    yield { size: 1, reason: { code: 'event-without-causes', what: 'it has no causes' } };
  for (const cause of causes) {
    const before = senses?.tries ?? 0;
    const reason = whyCauseNever(cause, senses);
    const tried = 1 + before - (senses?.tries ?? 0);
    yield { size: tried * sizeOf(cause), reason };
  }
}

/** For one range: it tries as many values as the thresholds name, and looks each up among them. */
function sizeOf({ thresholds: { isOneOf = [], isNotIn = [] } }: CompiledCause): number {
  const named = isOneOf.length + isNotIn.length;
  return named > maxTried ? 1 : 1 + named ** 2 / 100;
}

function whyCauseNever(cause: CompiledCause, known?: KnownSenses): Never | null {
  const { sId, reads, thresholds } = cause;
  // A sense that no device has is silent, so such an event fires (`warnOfTime`).
  if (typeof cause.time?.noneForMs === 'number') return null;
  if (reads === 'nothing') {
    return thresholds.isInsideGeo
      ? {
          code: 'position-and-number',
          what: `its cause on ${sId} requires a position and a number at once`,
        }
      : { code: 'cause-without-thresholds', what: `its cause on ${sId} has no thresholds` };
  }
  if (!canAgree(cause, {}))
    return { code: 'no-value-fits', what: `no value satisfies its cause on ${sId}` };
  if (!known) return null;
  const senses = known.ranges.get(sId);
  if (!senses)
    return { code: 'no-device-has-sense', what: `none of the chosen devices has the sense ${sId}` };
  if (canAgreeWithin(cause, senses, known)) return null;
  const what = `no value within the range of the sense ${sId} satisfies its cause`;
  return { code: 'out-of-range', what };
}

function canAgreeWithin(cause: CompiledCause, senses: Sense[], known: KnownSenses): boolean {
  for (const sense of senses) {
    if (known.tries <= 0) return true;
    known.tries -= 1;
    if (canAgree(cause, sense)) return true;
  }
  return false;
}

/**
 * Warns of time and alarm members that have no effect, or probably not the intended one. `at`: the event's JSON
 * Pointer. `compiled`: the same event. `senses`: if known.
 */
function warnOfTime(
  event: PurposeEvent,
  compiled: LiveEvent,
  at: string,
  senses?: KnownSenses,
): Warning[] {
  return [
    ...warnOfNotice(event, compiled, at),
    ...warnOfAlarm(event, compiled, `${at}/actions`),
    ...listCauses(event).flatMap(({ cause, at: inEvent }) => [
      ...warnOfInterval(cause, `${at}/${inEvent}`, senses),
      ...warnOfSilence(cause, `${at}/${inEvent}`, senses),
    ]),
    ...warnOfAge(event, at),
  ];
}

/** Outcomes expire only beside newer ones, of the same cause or of another. */
function warnOfAge({ causes }: PurposeEvent, at: string): Warning[] {
  const [only, ...others] = causes;
  const { maxAgeMs, count = 1, forMs } = only?.threshold ?? {};
  const windowLength = Math.max(count, only?.measurement?.count ?? 0);
  if (maxAgeMs === undefined || others.length > 0 || windowLength > 1 || forMs !== undefined)
    return [];
  const what =
    'it has no effect: the event has only one cause, which looks at a single measurement';
  return [warning('no-effect', `${at}/causes/0/threshold/maxAgeMs`, what)];
}

/** An event that waits for silence fires if nothing could be measured, and if the service was away for a short time. */
function warnOfSilence(
  { sId, threshold }: Cause,
  at: string,
  senses: KnownSenses | undefined,
): Warning[] {
  const { noneForMs } = threshold ?? {};
  if (noneForMs === undefined) return [];
  const warnings: Warning[] = [];
  if (noneForMs <= unnoticedGapMs) {
    const what =
      'it may hold even though the device sent something: the service can be away unnoticed for 15 s';
    warnings.push(warning('short-silence', `${at}/threshold/noneForMs`, what));
  }
  if (senses && !senses.ranges.has(sId)) {
    const what = `none of the chosen devices has the sense ${sId}: it is always silent`;
    warnings.push(warning('always-silent', `${at}/sId`, what));
  }
  return warnings;
}

/** A notice at each firing may be intended (a button) or not (a forgotten threshold). One that moves notifies once. */
function warnOfNotice({ actions }: PurposeEvent, event: LiveEvent, path: string): Warning[] {
  if (event.tells !== 'notice' || actions.alarm === false) return [];
  if (!isMetByAny(event) || !staysHere(event)) return [];
  const what = 'people are notified at each firing, because any measurement satisfies its causes';
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
      'no measurement ends this alarm, because any measurement satisfies its causes',
    );
  const none =
    tells === 'notice'
      ? 'a notice is sent once and is not kept'
      : 'nobody is notified of this event';
  if (repeatMs !== undefined && tells !== 'alarm')
    warn('no-effect', 'repeatMs', `it has no effect: ${none}`);
  const isKept = tells === 'alarm' || tells === 'silent-alarm';
  if (keepMs !== undefined && !isKept) warn('no-effect', 'keepMs', `it has no effect: ${none}`);
  return warnings;
}

/** A time shorter than the interval between two measurements means something else than it seems to. */
function warnOfInterval(
  { sId, threshold, measurement }: Cause,
  at: string,
  senses: KnownSenses | undefined,
): Warning[] {
  const intervalMs = Math.max(measurement?.interval ?? 0, senses?.slowest.get(sId) ?? 0);
  const { forMs, noneForMs } = threshold ?? {};
  const every = `${sId} is measured every ${describeDuration(intervalMs)}`;
  if (forMs !== undefined && forMs < intervalMs) {
    const what = `it is shorter than the interval (${every}), so a single measurement is enough`;
    return [warning('shorter-than-interval', `${at}/threshold/forMs`, what)];
  }
  if (noneForMs !== undefined && noneForMs <= intervalMs) {
    const what = `it is not longer than the interval (${every}), so every normal pause counts as silence`;
    return [warning('shorter-than-interval', `${at}/threshold/noneForMs`, what)];
  }
  return [];
}

/** Whether any measurement meets all of its causes, or all of a group, at once. */
function isMetByAny(event: LiveEvent): boolean {
  const isMet = ({ reads, negate, time }: CompiledCause) =>
    reads === 'anything' && !negate && time === null;
  return alternativesOf(event).some((causes) => causes.length > 0 && causes.every(isMet));
}

/** Whether it only waits until nothing is measured. */
function isMetBySilence({ causes }: LiveEvent): boolean {
  return causes.length > 0 && causes.every(({ time }) => typeof time?.noneForMs === 'number');
}

/** A move that needs no value to compare. */
type SelfMove = { on: 'any' | 'silence'; to: Place };

/** Where an event moves the device on any measurement, or on silence; null for all other events. */
function selfMoveOf(event: LiveEvent): SelfMove | null {
  if (!event.target) return null;
  const to = event.target.place;
  if (isMetByAny(event)) return { on: 'any', to };
  return isMetBySilence(event) ? { on: 'silence', to } : null;
}

/** Warns of polygons round a pole: latitude and longitude are treated as a plane, which has no poles. */
export function warnOfPolygons(purposes: readonly Purpose[], pathOf: PurposePath): Warning[] {
  return [...listPolygons(purposes, pathOf)]
    .filter(({ polygon }) => isRoundPole(polygon))
    .map(({ path }) =>
      warning(
        'polygon-round-pole',
        path,
        'the polygon encloses a pole, which is not supported: what counts as inside is not ' +
          'what it encloses on the globe',
      ),
    );
}

/** Whether its longitudes, each by the shorter way from the one before, add up to a full circle. */
function isRoundPole(polygon: readonly Position[]): boolean {
  let sumOfLongitude = 0;
  let from = polygon.at(-1);
  for (const to of polygon) {
    sumOfLongitude += shorterWay(to.long - (from?.long ?? to.long));
    from = to;
  }
  // It is a full circle or nothing, apart from rounding.
  return Math.abs(sumOfLongitude) > 180;
}

function* listPolygons(purposes: readonly Purpose[], pathOf: PurposePath) {
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, event] of events.entries())
        for (const { cause, at } of listCauses(event)) {
          const polygon = cause.thresholds.isInsideGeo;
          const path = `${pathOf(index)}/states/${s}/events/${e}/${at}/thresholds/isInsideGeo`;
          if (polygon) yield { polygon, path };
        }
}

/** How much is checked before the event loop does other work: some milliseconds. */
const sizeAtOnce = 2_000;

/** The first hundred warnings of a profile (`listWarnings`). Other work runs in each `pause`. */
export async function listWarningsYielding(
  purposes: Purpose[],
  devices: DeviceSenses | undefined,
  pathOf: PurposePath,
  pause: () => Promise<void>,
): Promise<Warning[]> {
  const found: Warning[] = [];
  let size = 0;
  await pause();
  for (const part of warnInParts(purposes, devices, pathOf)) {
    found.push(...part.warnings);
    if (found.length >= maxWarnings) break;
    size += part.size;
    if (size < sizeAtOnce) continue;
    size = 0;
    await pause();
  }
  return found.slice(0, maxWarnings);
}
