import { type Action, type Actions, listAsked } from '../contract/actions.ts';
import type { Sense } from '../contract/configuration.ts';
import type { DeviceEvent, EventName, SenseEvent } from '../contract/event.ts';
import type { Cause, Purpose, PurposeEvent, State, Thresholds } from '../contract/purpose.ts';
import type { Place } from '../contract/values.ts';
import { type Over, type Polygon, preparePolygon, wordBits } from './arithmetic.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Purposes laid out for evaluation: from a place and a sense straight to the causes that read it. */
export type Profile = {
  pId: string;
  first: { puId: number; stId: number };
  purposes: ReadonlyMap<number, CompiledPurpose>;
  /** Every sense that any cause of the profile reads, numbered from 0 on. */
  senses: ReadonlyMap<string, number>;
  /** Whether any cause has members of time: its evidence is stored as a whole, without a log. */
  isTimed: boolean;
};

/** Lays purposes out for evaluation. They are taken as valid; a move to what is not there moves nothing. */
export function compileProfile(pId: string, purposes: Purpose[]): Profile {
  const initStIds = new Map(purposes.map((purpose) => [purpose.puId, purpose.initStId]));
  const compiled = new Map(
    purposes.map((purpose) => [purpose.puId, compilePurpose(purpose, initStIds)]),
  );
  const [first] = purposes;
  return {
    pId,
    first: { puId: first?.puId ?? 0, stId: first?.initStId ?? 0 },
    purposes: compiled,
    senses: numbered(sensesOf(purposes)),
    isTimed: [...compiled.values()].some(hasTime),
  };
}

/** Each element and its number, from 0 on. */
export function numbered(elements: ReadonlySet<string>): ReadonlyMap<string, number> {
  return new Map([...elements].map((element, number) => [element, number]));
}

function sensesOf(purposes: Purpose[]): ReadonlySet<string> {
  const events = purposes.flatMap(({ states }) => states.flatMap((state) => state.events));
  return new Set(events.flatMap(({ causes }) => causes.map(({ sId }) => sId)));
}

/** The event of a state by its number, or null. */
export function findEvent(
  profile: Profile,
  { puId, stId }: { puId: number; stId: number },
  evId: number,
): LiveEvent | null {
  const state = profile.purposes.get(puId)?.states.get(stId);
  return state?.events.find((event) => event.evId === evId) ?? null;
}

function hasTime({ states }: CompiledPurpose): boolean {
  return [...states.values()].some(({ events }) => events.some(({ isTimed }) => isTimed));
}

export type CompiledState = {
  stId: number;
  /** Empty where it has none. */
  name: string;
  isGlobal: boolean;
  events: LiveEvent[];
  causesBySense: CausesBySense;
  timed: Timed;
  /** Those of which something outlasts that the state is entered again; a global one is entered with its purpose. */
  staying: LiveEvent[];
  /** With what the purpose's global states add. */
  weight: Weight;
};

export type CompiledPurpose = {
  puId: number;
  /** Empty where it has none. */
  name: string;
  initStId: number;
  states: ReadonlyMap<number, CompiledState>;
  /** Events of every global state, in order. */
  globalEvents: LiveEvent[];
  globalCausesBySense: CausesBySense;
  globalTimed: Timed;
  globalStaying: LiveEvent[];
  /** Of these alone: where a device stands in a state that the purpose does not have. */
  globalWeight: Weight;
};

/** `initStIds`: where each purpose of the profile begins, by puId. */
function compilePurpose(purpose: Purpose, initStIds: ReadonlyMap<number, number>): CompiledPurpose {
  let globals = 0;
  const states = purpose.states.map((state): CompiledState => {
    const first = state.isGlobal ? globals : 0;
    const events = state.events.map((event, index) =>
      compileEvent(purpose, state, event, first + index, initStIds),
    );
    if (state.isGlobal) globals += events.length;
    const causesBySense = indexCausesBySense(events);
    const weight = weightOf(events, causesBySense);
    const { stId, name = '', isGlobal } = state;
    const timed = timedOf(events);
    const staying = isGlobal ? [] : events.filter(stays);
    return { stId, name, isGlobal, events, causesBySense, timed, staying, weight };
  });
  const globalEvents = states.flatMap((state) => (state.isGlobal ? state.events : []));
  const globalCausesBySense = indexCausesBySense(globalEvents);
  const globalWeight = weightOf(globalEvents, globalCausesBySense);
  for (const state of states) state.weight = sumOf(state.weight, globalWeight);
  return {
    puId: purpose.puId,
    name: purpose.name ?? '',
    initStId: purpose.initStId,
    states: new Map(states.map((state) => [state.stId, state])),
    globalEvents,
    globalCausesBySense,
    globalTimed: timedOf(globalEvents),
    globalStaying: globalEvents.filter(stays),
    globalWeight,
  };
}

const stays = ({ staysAtReentry }: LiveEvent) => staysAtReentry;

export type LiveEvent = {
  stId: number;
  evId: number;
  name: string;
  isGlobal: boolean;
  /** Its place in the evidence of a runtime: among the events of its state, or of all global ones. */
  index: number;
  /** Name of its evidence in a runtime that is stored. */
  key: string;
  /** By ascending orderId. */
  causes: CompiledCause[];
  actions: Actions;
  /** Whether a firing is recorded as a `sense` event. */
  record: boolean;
  /** Who is notified of a firing. */
  tells: Tells;
  /** Whether it is kept which firings are of one episode: alarms are. */
  hasEpisodes: boolean;
  /** Whether an episode of it may outlast outcomes that disagree. */
  isLenient: boolean;
  /** Whether one of its causes has members of time. */
  isTimed: boolean;
  /** Whether one of them has `maxAgeMs`. */
  isAged: boolean;
  /** Whether something of it outlasts that its state is entered again. */
  staysAtReentry: boolean;
  target: MoveTarget | null;
  /** Whether a firing is seen by nobody, but for where it moves the device. */
  isSilent: boolean;
  /** Whether one measurement that its causes agree with fires it, and leaves nothing behind: nobody sees that either. */
  isSpentAtOnce: boolean;
};

/** `index` is its place in the evidence; `initStIds`: where each purpose of the profile begins, by puId. */
function compileEvent(
  purpose: Purpose,
  state: State,
  event: PurposeEvent,
  index: number,
  initStIds: ReadonlyMap<number, number>,
): LiveEvent {
  const { actions } = event;
  const causes = event.causes
    .map(compileCause)
    .toSorted((one, other) => one.orderId - other.orderId);
  const asked = listAsked(actions);
  const reaches = (whom: Action<Actions>['reaches']) => asked.some((kind) => kind.reaches === whom);
  const record = event.eventLog || reaches('history');
  const [cause] = causes;
  const isSpentAtOnce =
    causes.length > 0 &&
    causes.every(({ sId, needed, relative }) => sId === cause?.sId && needed === 1 && !relative);
  const target = targetOf(purpose, actions, initStIds);
  const told = { causes, target, stId: state.stId, actions };
  const tells = tellsOf(told, purpose, reaches('people'));
  const hasEpisodes = tells === 'alarm' || tells === 'silent-alarm';
  const isTimed = causes.some(({ time }) => time !== null);
  const isSilent = !record && tells === 'nobody' && !reaches('device');
  return {
    stId: state.stId,
    evId: event.evId,
    name: event.name ?? '',
    isGlobal: state.isGlobal,
    index,
    key: `${state.stId}/${event.evId}`,
    causes,
    actions,
    record,
    tells,
    hasEpisodes,
    isLenient: hasEpisodes && causes.some(({ slack }) => slack > 0),
    isTimed,
    isAged: causes.some(({ time }) => time?.maxAgeMs),
    staysAtReentry: hasEpisodes || isTimed,
    target,
    isSilent,
    isSpentAtOnce: isSilent && isSpentAtOnce && !isTimed,
  };
}

/**
 * What a cause's thresholds can be met by. `nothing`: there are none, or some ask for a number and
 * others for a position.
 */
type Reads = 'numbers' | 'positions' | 'anything' | 'nothing';

export type CompiledCause = {
  sId: string;
  orderId: number;
  reads: Reads;
  thresholds: Thresholds;
  /** What an event that it completed tells of the thresholds: without long lists, which would be kept with each event. */
  toldThresholds: Thresholds;
  /** Its limits, infinite where it has none, and its lists, null where it has none. */
  above: number;
  below: number;
  lists: Thresholds | null;
  polygon: Polygon | null;
  negate: boolean;
  relative: boolean;
  decimalAcc: number | null;
  /** Neither relative nor rounded: numbers are compared as they come. */
  isPlain: boolean;
  /** Numbers are compared as they come, and with its limits only. */
  hasLimitsOnly: boolean;
  /** How many measurements must agree, of how many. */
  needed: number;
  windowLength: number;
  /** How many of the last m outcomes may disagree and an episode goes on. */
  slack: number;
  /** Its members of time; null where it has none. */
  time: TimeMembers | null;
  /** Whether its window has one outcome, and nothing beside it: what it collects is never changed, but another one. */
  isSingle: boolean;
  /** What judging one measurement takes, beside a cause with two limits, which takes 1; and more where it changes. */
  cost: number;
  costOfChange: number;
};

/** As in the purpose (ms), null where they are absent. */
export type TimeMembers = {
  forMs: number | null;
  noneForMs: number | null;
  maxAgeMs: number | null;
  over: Over | null;
};

/** A cause as it is evaluated. */
function compileCause(cause: Cause): CompiledCause {
  const { thresholds, threshold } = cause;
  const needed = threshold?.count ?? 1;
  const time = timeOf(threshold);
  // The first measurement that disagrees ends a run, and any ends a silence: there `measurement.count` instructs the
  // device only.
  const isLasting = time?.forMs || time?.noneForMs;
  const windowLength = isLasting ? needed : Math.max(needed, cause.measurement?.count ?? 0);
  const reads = readsOf(thresholds);
  const isPlain = threshold?.relative !== true && threshold?.decimalAcc === undefined;
  const lists = thresholds.isOneOf || thresholds.isNotIn ? thresholds : null;
  return {
    sId: cause.sId,
    orderId: cause.orderId ?? 0,
    reads,
    thresholds,
    toldThresholds: withoutLongLists(thresholds),
    above: thresholds.isGt ?? -Infinity,
    below: thresholds.isLt ?? Infinity,
    lists,
    polygon: thresholds.isInsideGeo ? preparePolygon(thresholds.isInsideGeo) : null,
    negate: threshold?.negate ?? false,
    relative: threshold?.relative ?? false,
    decimalAcc: threshold?.decimalAcc ?? null,
    isPlain,
    hasLimitsOnly: isPlain && lists === null && (reads === 'numbers' || reads === 'anything'),
    needed,
    windowLength,
    slack: windowLength - needed,
    time,
    isSingle: windowLength === 1 && threshold?.relative !== true,
    cost: costOf(cause),
    costOfChange: time ? costOfTime : windowLength === 1 ? 1 : 2,
  };
}

function timeOf(threshold: Cause['threshold']): TimeMembers | null {
  const { forMs = null, noneForMs = null, maxAgeMs = null, over = null } = threshold ?? {};
  const isAsked = forMs !== null || noneForMs !== null || maxAgeMs !== null || over !== null;
  return isAsked ? { forMs, noneForMs, maxAgeMs, over } : null;
}

/** What it takes to copy 12 parts of a window, or the times of 64 outcomes. */
const costOfTime = 16;

/** As measured: a rounding takes 8, each corner of a polygon 3, and 32 numbers of a list. */
function costOf({ thresholds, threshold }: Cause): number {
  const { isOneOf = [], isNotIn = [], isInsideGeo = [] } = thresholds;
  const listed = (isOneOf.length + isNotIn.length) / 32;
  return 1 + (threshold?.decimalAcc === undefined ? 0 : 8) + 3 * isInsideGeo.length + listed;
}

function readsOf({ isGt, isLt, isOneOf, isNotIn, isAny, isInsideGeo }: Thresholds): Reads {
  const members = [isGt, isLt, isOneOf, isNotIn];
  const numbers = members.some((member) => member !== undefined);
  if (isInsideGeo) return numbers ? 'nothing' : 'positions';
  if (numbers) return 'numbers';
  return isAny === true ? 'anything' : 'nothing';
}

/** Longest list that is kept with each event. */
const longestTold = 16;

/** What is told of thresholds with each event. */
function withoutLongLists(thresholds: Thresholds): Thresholds {
  const isShort = ([, value]: [string, unknown]) =>
    !Array.isArray(value) || value.length <= longestTold;
  return Object.fromEntries(Object.entries(thresholds).filter(isShort));
}

/** Where a firing moves the device, and whether that enters a purpose or only a state of this one. */
export type MoveTarget = { place: Place; entersPurpose: boolean };

/** `initStIds`: where each purpose of the profile begins, by puId. */
function targetOf(
  purpose: Purpose,
  { engine }: Actions,
  initStIds: ReadonlyMap<number, number>,
): MoveTarget | null {
  const { gotoPuId, gotoStId } = engine ?? {};
  if (gotoPuId === undefined) {
    if (gotoStId === undefined) return null;
    return { place: { puId: purpose.puId, stId: gotoStId }, entersPurpose: false };
  }
  const stId = gotoStId ?? initStIds.get(gotoPuId);
  if (stId === undefined) return null;
  return { place: { puId: gotoPuId, stId }, entersPurpose: true };
}

type Told = {
  causes: { reads: string; negate: boolean; time: object | null }[];
  target: { place: Place } | null;
  stId: number;
  actions: Actions;
};

/**
 * Whom firings of an event concern. A notice is what cannot be over (all causes `isAny`), what leads back to
 * the purpose's initial state, and what says `alarm: false`.
 */
function tellsOf(
  { causes, target, stId, actions }: Told,
  { puId, initStId }: { puId: number; initStId: number },
  notifies: boolean,
): Tells {
  if (actions.alarm === true) return notifies ? 'alarm' : 'silent-alarm';
  if (!notifies) return 'nobody';
  if (actions.alarm === false) return 'notice';
  if (causes.every(isAnything)) return 'notice';
  const leadsBack =
    stId !== initStId && target?.place.puId === puId && target.place.stId === initStId;
  return leadsBack ? 'notice' : 'alarm';
}

function isAnything({ reads, negate, time }: Told['causes'][number]): boolean {
  return reads === 'anything' && !negate && time === null;
}

/** An event and which of its causes read one sense; what a measurement takes of all of them (`CompiledCause`). */
export type CauseReader = {
  event: LiveEvent;
  causes: number[];
  /** Of each of them above, below and whether it is negated (1), where numbers are compared with nothing else. */
  limits: Float64Array | null;
  /** Whether all of them do so, and have long windows: then it may take many numbers at once (`DeferredNumbers`). */
  isLong: boolean;
  /** Whether they do so and have windows of one outcome, and are all that the event has: only the newest number counts. */
  isNewestOnly: boolean;
  cost: number;
  costOfChange: number;
};

/** All that read a sense, in the order in which they are tried. */
type CausesBySense = ReadonlyMap<string, CauseReader[]>;

/** What reads which sense, of some events. */
export function indexCausesBySense(events: LiveEvent[]): CausesBySense {
  const causesBySense = new Map<string, CauseReader[]>();
  for (const event of events) {
    for (const [index, cause] of event.causes.entries()) {
      // What reads nothing collects nothing, and never holds.
      if (cause.reads !== 'nothing' || cause.time?.noneForMs)
        addReader(causesBySense, event, index, cause);
    }
  }
  for (const list of causesBySense.values())
    for (const reader of list) {
      const { event, causes } = reader;
      reader.limits = event.isTimed ? null : limitsOf(event.causes, causes);
      const isLong = (index: number) => (event.causes[index]?.windowLength ?? 1) > wordBits;
      reader.isLong = reader.limits !== null && causes.every(isLong);
      const isWhole = causes.length === event.causes.length;
      const isSingle = ({ isSingle: single }: CompiledCause) => single;
      // What agrees with everything fires each time: nothing is put off.
      const canDisagree = event.causes.some(({ reads, negate }) => reads === 'numbers' || negate);
      reader.isNewestOnly =
        reader.limits !== null && isWhole && canDisagree && event.causes.every(isSingle);
    }
  return causesBySense;
}

/** Side by side, where they are read faster than from one cause after the other. */
function limitsOf(causes: CompiledCause[], indexes: number[]): Float64Array | null {
  const reading = indexes.map((index) => causes[index]).filter((cause) => cause !== undefined);
  if (!reading.every((cause) => cause.hasLimitsOnly)) return null;
  return Float64Array.from(
    reading.flatMap(({ above, below, negate }) => [above, below, negate ? 1 : 0]),
  );
}

function addReader(
  causesBySense: Map<string, CauseReader[]>,
  event: LiveEvent,
  index: number,
  { sId, cost, costOfChange }: CompiledCause,
): void {
  const known = causesBySense.get(sId);
  const last = known?.at(-1);
  if (last?.event === event) {
    last.causes.push(index);
    last.cost += cost;
    last.costOfChange += costOfChange;
    return;
  }
  const reader: CauseReader = {
    event,
    causes: [index],
    limits: null,
    isLong: false,
    isNewestOnly: false,
    cost,
    costOfChange,
  };
  if (known) known.push(reader);
  else causesBySense.set(sId, [reader]);
}

/** How much there is to judge and to keep: what a measurement takes at most, causes, and outcomes of windows. */
export type Weight = { judging: number; causes: number; outcomes: number };

function sumOf(own: Weight, global: Weight): Weight {
  return {
    judging: own.judging + global.judging,
    causes: own.causes + global.causes,
    outcomes: own.outcomes + global.outcomes,
  };
}

function weightOf(events: LiveEvent[], causesBySense: CausesBySense): Weight {
  const weight: Weight = { judging: 0, causes: 0, outcomes: 0 };
  for (const list of causesBySense.values()) {
    const judging = list.reduce((sum, { cost }) => sum + cost, 0);
    weight.judging = Math.max(weight.judging, judging);
  }
  for (const { causes } of events) {
    weight.causes += causes.length;
    for (const { windowLength, time } of causes)
      weight.outcomes += windowLength + (time ? outcomesOfTime(windowLength, time) : 0);
  }
  return weight;
}

/** Those of some events that have members of time. */
export type Timed = {
  /** With a cause that waits for ticks, in order. */
  ticking: LiveEvent[];
  /** With a cause that has `noneForMs`. */
  withSilences: LiveEvent[];
  /** By sense, those in which a cause that reads it has `forMs`. */
  withRuns: ReadonlyMap<string, LiveEvent[]>;
};

export function timedOf(events: LiveEvent[]): Timed {
  const hasSilence = ({ causes }: LiveEvent) => causes.some(({ time }) => time?.noneForMs);
  const withRuns = new Map<string, LiveEvent[]>();
  for (const event of events) {
    const runs = event.causes.filter(({ time }) => time?.forMs);
    for (const sId of new Set(runs.map((cause) => cause.sId)))
      withRuns.set(sId, [...(withRuns.get(sId) ?? []), event]);
  }
  const hasRun = ({ causes }: LiveEvent) => causes.some(({ time }) => time?.forMs);
  return {
    ticking: events.filter((event) => hasSilence(event) || hasRun(event)),
    withSilences: events.filter(hasSilence),
    withRuns,
  };
}

/** What members of time take where they are kept, in outcomes of a window. */
function outcomesOfTime(windowLength: number, { over, maxAgeMs }: TimeMembers): number {
  return 600 + (over ? 3_600 : 0) + (maxAgeMs ? 100 * windowLength : 0);
}

/** The senses of each device a profile is meant for. */
export type DeviceSenses = Sense[][];

/**
 * The same by sense: the range of each of them, and the longest `minInterval` of those that have one, in ms.
 * `tries`: how many ranges will be looked at yet.
 */
export type KnownSenses = {
  ranges: ReadonlyMap<string, Sense[]>;
  slowest: ReadonlyMap<string, number>;
  tries: number;
};

/** As many ranges are looked at for one profile: beyond it nothing is said to be out of range. */
const maxTries = 20_000;

/** By sense what its devices say of it. */
export function knownSenses(devices: DeviceSenses): KnownSenses {
  const ranges = new Map<string, Sense[]>();
  const slowest = new Map<string, number>();
  for (const senses of devices) {
    for (const sense of senses) {
      const known = ranges.get(sense.sId);
      if (known) known.push(sense);
      else ranges.set(sense.sId, [sense]);
      const { sId, minInterval = 0 } = sense;
      if (minInterval > (slowest.get(sId) ?? 0)) slowest.set(sId, minInterval);
    }
  }
  return { ranges, slowest, tries: maxTries };
}

/** When a measurement counts: `t` is the time at which it is taken, `arrivedTs` when the service read it. Ms. */
export type Moment = { t: number; arrivedTs: WallMs };

/**
 * Whom an event's firings concern: a `notice` is told each time and not kept; a `silent-alarm` is kept, and nobody is told.
 */
export type Tells = 'nobody' | 'notice' | 'alarm' | 'silent-alarm';

/** An event that fired. */
export type Firing = {
  event: SenseEvent;
  /** The event's name in its purpose, empty where it has none. */
  name: string;
  record: boolean;
  actions: Actions;
  tells: Tells;
  /** The first of its episode; always, where the event has none (`nobody`, `notice`). */
  isFirst: boolean;
  /**
   * How old the measurement that completed it was at its arrival, ms; of a tick the newest measurement of the cause that
   * it completes; 0 of a silence.
   */
  ageMs: number;
};

/** The device moved; no `event` where it entered the state it was in. */
export type Transition = { to: Place; event?: DeviceEvent };

/** What one measurement, or one tick, led to. */
export type Evaluated = {
  firings: Firing[];
  transition?: Transition;
  /** Episodes that ended, because a cause disagreed. One of an event that is among `firings` ended before that. */
  ended: EventName[];
  /** When the measurement arrived; of a tick when it was due. */
  arrivedTs: WallMs;
};
