import type { Purpose, PurposePath } from '../../contract/purpose.ts';
import type { EventName } from '../../contract/event.ts';
import type { Measurement } from '../../contract/values.ts';
import {
  type Warning,
  type WarningCode,
  warning,
  type WitnessStep,
} from '../../contract/warnings.ts';
import {
  alternativesOf,
  type CompiledCause,
  compileProfile,
  findEvent,
  type Profile,
} from '../compile.ts';
import { judge } from '../thresholds.ts';
import { type Bounds, classesOf } from './classes.ts';
import { closed, type Explored, liveAt } from './explore.ts';
import { placeKey } from './impossible.ts';
import { goal, startNode, walk } from './walk.ts';

type KnownBounds = ReadonlyMap<string, Bounds>;
type Options = { bounds?: KnownBounds | undefined; pathOf: PurposePath };

/**
 * What exploring purposes shows to be valid but probably not meant, beyond what `listWarnings` sees: events that never
 * fire, or on every value; states that are never reached; what the same value over and over leads to.
 */
export function findingsOf(
  purposes: readonly Purpose[],
  explored: Explored,
  { bounds = new Map<string, Bounds>(), pathOf }: Options,
): Warning[] {
  const profile = compileProfile('', closed(purposes)[0]);
  const paths = pathsOf(purposes, pathOf);
  return [
    ...whatNever(explored, profile, paths),
    ...firesAlways(profile, explored, paths, bounds),
    ...constantly(profile, explored, paths, bounds),
  ];
}

type Paths = ReadonlyMap<string, string>;

/** The JSON Pointers of states ("1/2") and events ("1/2/3"). */
function pathsOf(purposes: readonly Purpose[], pathOf: PurposePath): Paths {
  const paths = new Map<string, string>();
  for (const [index, { puId, states }] of purposes.entries())
    for (const [s, { stId, events }] of states.entries()) {
      const at = `${pathOf(index)}/states/${s}`;
      paths.set(`${puId}/${stId}`, at);
      for (const [e, { evId }] of events.entries())
        paths.set(`${puId}/${stId}/${evId}`, `${at}/events/${e}`);
    }
  return paths;
}

function finding(
  code: WarningCode,
  path: string | undefined,
  what: string,
  witness?: WitnessStep[],
): Warning[] {
  if (path === undefined) return [];
  return [{ ...warning(code, path, what), ...(witness && { witness }) }];
}

function whatNever({ events, states }: Explored, profile: Profile, paths: Paths): Warning[] {
  return [
    ...events.flatMap(({ why, ...of }) => {
      const path = paths.get(`${placeKey(of)}/${of.evId}`);
      if (why === 'exclude-each-other') {
        const what = 'this event can never fire: no value satisfies all of its causes on one sense';
        return finding('causes-exclude', path, what);
      }
      if (why !== 'shadowed') return [];
      return finding('never-fires', path, 'this event never fires, whatever is measured');
    }),
    ...states.flatMap(({ reached, ...place }) => {
      const state = profile.purposes.get(place.puId)?.states.get(place.stId);
      if (reached.is !== 'never' || state?.isGlobal) return [];
      return finding(
        'unreachable-state',
        paths.get(placeKey(place)),
        'nothing leads to this state',
      );
    }),
  ];
}

/** Events with limits that no value is within. One with `isAny` is meant to fire each time. */
function firesAlways(
  profile: Profile,
  { events }: Explored,
  paths: Paths,
  bounds: KnownBounds,
): Warning[] {
  return events.flatMap(({ fires, ...name }) => {
    const event = findEvent(profile, name, name.evId);
    const isMet = alternativesOf(event ?? { causes: [], groups: null }).some((causes) =>
      isMetByEach(causes, bounds),
    );
    if (!isMet) return [];
    const path = paths.get(`${placeKey(name)}/${name.evId}`);
    const what = 'every value satisfies the causes of this event';
    return finding(
      'fires-on-every-value',
      path,
      what,
      fires.is === 'witnessed' ? fires.steps : undefined,
    );
  });
}

function isMetByEach(causes: readonly CompiledCause[], bounds: KnownBounds): boolean {
  const [first] = causes;
  if (!first) return false;
  const isPlain = ({ sId, reads, time, relative }: CompiledCause) =>
    sId === first.sId && reads === 'numbers' && time === null && !relative;
  if (!causes.every(isPlain)) return false;
  const { values, isWhole } = classesOf(causes, bounds.get(first.sId));
  const isMet = (value: Measurement['val']) =>
    causes.every((cause) => judge(cause, value, undefined) === true);
  return isWhole && values.every(isMet);
}

/** How often and how long the same value comes. */
const everyMs = 60_000;
const often = 60;
/** As in exploring: the most that is tried. */
const mostEffort = 250_000;
/** A device that leaves a state as often as this on one value goes back and forth. */
const mostLeft = 3;

/** What the same value leads to if it comes once a minute for an hour, in each state that is reached. */
function constantly(
  profile: Profile,
  { events, states }: Explored,
  paths: Paths,
  bounds: KnownBounds,
): Warning[] {
  const found = new Map<string, Warning>();
  let effort = 0;
  for (const { reached, puId, stId } of states) {
    if (reached.is !== 'witnessed') continue;
    const causes = liveAt(profile, { puId, stId }).flatMap((event) => event.causes);
    for (const [sId, reading] of Map.groupBy(causes, (cause) => cause.sId)) {
      const classes = classesOf(reading, bounds.get(sId));
      effort += classes.effort;
      for (const val of classes.values) {
        if (effort > mostEffort) return [...found.values()];
        const same = { afterMs: everyMs, sId, val };
        const played = repeat(profile, reached.steps, same);
        effort += played.effort;
        const count = (shown: string) => played.shown.filter((one) => one === shown).length;
        const value = typeof val === 'number' ? val : `${val.lat} ${val.long}`;
        const add = (code: WarningCode, path: string | undefined, what: string, times: number) => {
          const steps = [...reached.steps, { ...same, times }];
          for (const one of finding(code, path, what, steps))
            if (!found.has(code + one.path)) found.set(code + one.path, one);
        };
        for (const place of states)
          if (count(goal.leaves(place)) >= mostLeft) {
            const what = `the value ${value} of ${sId} alone moves the device to and from this state`;
            add('back-and-forth', paths.get(placeKey(place)), what, 2 * mostLeft);
          }
        for (const name of events) {
          const times = count(goal.tells(name));
          if (times < 2 || isForAny(profile, name)) continue;
          const what = `people are notified ${times} times in an hour while ${sId} stays ${value}`;
          add('told-often', paths.get(`${placeKey(name)}/${name.evId}`), what, often);
        }
      }
    }
  }
  return [...found.values()];
}

/** Whether any measurement fires an event, which `listWarnings` sees. */
function isForAny(profile: Profile, { puId, stId, evId }: EventName): boolean {
  const event = findEvent(profile, { puId, stId }, evId);
  return (
    event !== null &&
    alternativesOf(event).some((causes) =>
      causes.every(({ reads, negate, time }) => reads === 'anything' && !negate && time === null),
    )
  );
}

function repeat(
  profile: Profile,
  before: readonly WitnessStep[],
  same: WitnessStep,
): { shown: string[]; effort: number } {
  let node = startNode(profile);
  const shown: string[] = [];
  let effort = 0;
  for (const step of before) {
    const walked = walk(profile, node, step);
    effort += walked.effort;
    node = walked.node ?? node;
  }
  for (let count = 0; count < often; count++) {
    const walked = walk(profile, node, same);
    effort += walked.effort;
    if (!walked.node) break;
    shown.push(...walked.shown);
    node = walked.node;
  }
  return { shown, effort };
}
