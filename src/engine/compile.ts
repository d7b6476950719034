import { type Action, type Actions, listAsked } from '../contract/actions.ts';
import type { Sense } from '../contract/configuration.ts';
import type { DeviceEvent, EventName, SenseEvent } from '../contract/event.ts';
import {
  type Cause,
  listCauses,
  type Purpose,
  type PurposeEvent,
  type State,
  type Thresholds,
} from '../contract/purpose.ts';
import type { Place } from '../contract/values.ts';
import { type Over, type Polygon, preparePolygon, wordBits } from './arithmetic.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Purposes prepared for evaluation: from a place and a sense straight to the causes that read it. */
export type Profile = {
  pId: string;
  /** Of its stored content, which other profiles may share; absent if it is not stored. */
  contentId?: number | undefined;
  first: { puId: number; stId: number };
  purposes: ReadonlyMap<number, CompiledPurpose>;
  /** Every sense that a cause of the profile reads, numbered from 0. */
  senses: ReadonlyMap<string, number>;
  /** Whether any cause has time members. Its evidence is then stored as a whole, without a log. */
  isTimed: boolean;
};

/** Prepares purposes, which must be valid, for evaluation. A move to a place that does not exist has no effect. */
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

/** Each element with its number, counted from 0. */
export function numbered(elements: ReadonlySet<string>): ReadonlyMap<string, number> {
  return new Map([...elements].map((element, number) => [element, number]));
}

function sensesOf(purposes: Purpose[]): ReadonlySet<string> {
  const events = purposes.flatMap(({ states }) => states.flatMap((state) => state.events));
  return new Set(events.flatMap((event) => listCauses(event).map(({ cause }) => cause.sId)));
}

/** Finds an event of a state by its number; null if there is none. */
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
  /** Empty if it has none. */
  name: string;
  isGlobal: boolean;
  events: LiveEvent[];
  causesBySense: CausesBySense;
  timed: Timed;
  /** Events that keep something when the state is entered again. A global state is entered with its purpose. */
  staying: LiveEvent[];
  /** Includes what the purpose's global states add. */
  weight: Weight;
};

export type CompiledPurpose = {
  puId: number;
  /** Empty if it has none. */
  name: string;
  initStId: number;
  states: ReadonlyMap<number, CompiledState>;
  /** Events of all global states, in order. */
  globalEvents: LiveEvent[];
  globalCausesBySense: CausesBySense;
  globalTimed: Timed;
  globalStaying: LiveEvent[];
  /** For global states alone: applies if the device is in a state that the purpose does not have. */
  globalWeight: Weight;
};

/** `initStIds`: the initial state of each purpose of the profile, by puId. */
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
  /** Its index in a runtime's evidence: among the events of its state, or among all global ones. */
  index: number;
  /** The name of its evidence in a stored runtime. */
  key: string;
  /** By ascending orderId; with `anyOf` group after group. */
  causes: CompiledCause[];
  /** With `anyOf`: the indexes of each group's causes, all of which must hold. Null: all causes must. */
  groups: readonly (readonly number[])[] | null;
  actions: Actions;
  /** Whether a firing is recorded as a `sense` event. */
  record: boolean;
  /** Who is notified of a firing. */
  tells: Tells;
  /** Whether firings are grouped into episodes, as for alarms. */
  hasEpisodes: boolean;
  /** Whether an episode may survive outcomes that disagree. */
  isLenient: boolean;
  /** Whether a cause has time members. */
  isTimed: boolean;
  /** Whether a cause has `maxAgeMs`. */
  isAged: boolean;
  /** Whether it keeps something when its state is entered again. */
  staysAtReentry: boolean;
  target: MoveTarget | null;
  /** Whether a firing shows only in where it moves the device. */
  isSilent: boolean;
  /** Whether a single measurement that agrees fires it and leaves no evidence, and the firing is silent too. */
  isSpentAtOnce: boolean;
};

/** `index`: see `LiveEvent`. `initStIds`: the initial state of each purpose of the profile, by puId. */
function compileEvent(
  purpose: Purpose,
  state: State,
  event: PurposeEvent,
  index: number,
  initStIds: ReadonlyMap<number, number>,
): LiveEvent {
  const { actions } = event;
  const causes = listCauses(event)
    .map(({ cause, group }) => compileCause(cause, group))
    .toSorted((one, other) => one.group - other.group || one.orderId - other.orderId);
  const groups = event.anyOf ? event.anyOf.map((_, group) => indexesOf(causes, group)) : null;
  const asked = listAsked(actions);
  const reaches = (whom: Action<Actions>['reaches']) => asked.some((kind) => kind.reaches === whom);
  const record = event.eventLog || reaches('history');
  const [cause] = causes;
  const isSpentAtOnce =
    groups === null &&
    causes.length > 0 &&
    causes.every(({ sId, needed, relative }) => sId === cause?.sId && needed === 1 && !relative);
  const target = targetOf(purpose, actions, initStIds);
  const compiled = { causes, target, stId: state.stId, actions };
  const tells = tellsOf(compiled, purpose, reaches('people'));
  const hasEpisodes = tells === 'alarm' || tells === 'silent-alarm';
  if (hasEpisodes)
    for (const alike of Map.groupBy(causes, ({ group }) => group).values())
      for (const [at, keeps] of keepsBegin(alike).entries()) {
        const cause = alike[at] as CompiledCause;
        cause.keepsBegin = keeps;
        cause.isSingle &&= keeps === null;
      }
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
    groups,
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

/** The causes that fire an event when all of them hold: all, or with `anyOf` those of each group. */
export const alternativesOf = ({
  causes,
  groups,
}: Pick<LiveEvent, 'causes' | 'groups'>): CompiledCause[][] =>
  groups ? groups.map((indexes) => indexes.map((at) => causes[at] as CompiledCause)) : [causes];

const indexesOf = (causes: readonly CompiledCause[], group: number): number[] =>
  causes.flatMap((cause, index) => (cause.group === group ? [index] : []));

/**
 * What each cause of an event (with `anyOf`: of a group) keeps. If every window is one outcome, the event begins with
 * the measurement that fires it, and nothing is kept. Nor is it of long windows that allow for disagreement: it would
 * be as long as they are.
 */
function keepsBegin(causes: readonly CompiledCause[]): KeepsBegin[] {
  const isAtOnce = causes.every(({ windowLength, time }) => windowLength === 1 && time === null);
  return causes.map((cause) => {
    if (isAtOnce || cause.time?.noneForMs) return null;
    if (cause.time?.forMs) return 'first';
    const isEach = cause.slack > 0 || (cause.time?.maxAgeMs ?? null) !== null;
    if (!isEach) return 'first';
    // With `maxAgeMs` no window is longer than 64.
    return cause.windowLength <= wordBits || cause.time?.maxAgeMs ? 'each' : null;
  });
}

/**
 * The values that can meet a cause's thresholds. `nothing`: it has no thresholds, or some require a number and others
 * a position.
 */
type Reads = 'numbers' | 'positions' | 'anything' | 'nothing';

export type CompiledCause = {
  sId: string;
  /** The number of its group, from 0; without `anyOf` all are in the first. */
  group: number;
  orderId: number;
  reads: Reads;
  thresholds: Thresholds;
  /** The thresholds as an event reports them: without long lists, which each event would store. */
  reportedThresholds: Thresholds;
  /** The other part of its condition, as in the purpose; only what says something. */
  reportedThreshold: Record<string, unknown>;
  /** Its limits, infinite if it has none, and its lists, null if it has none. */
  above: number;
  below: number;
  lists: Thresholds | null;
  polygon: Polygon | null;
  negate: boolean;
  relative: boolean;
  decimalAcc: number | null;
  /** Neither relative nor rounded: numbers are compared as they are. */
  isPlain: boolean;
  /** Numbers are compared as they are, and only with its limits. */
  hasLimitsOnly: boolean;
  /** How many measurements must agree, and of how many. */
  needed: number;
  windowLength: number;
  /** How many of the last m outcomes may disagree while an episode continues. */
  slack: number;
  /** Its time members; null if it has none. */
  time: TimeMembers | null;
  /** What it keeps of its begin; null if its event opens no alarm. */
  keepsBegin: KeepsBegin;
  /** Whether its window is one outcome and nothing else. Such evidence is replaced instead of changed. */
  isSingle: boolean;
  /** The cost of judging a measurement (1 for a cause with two limits), and the extra cost if its evidence changes. */
  cost: number;
  costOfChange: number;
};

/** What a cause keeps of its begin: the first of a run, or each outcome that agreed; null: nothing. */
export type KeepsBegin = 'first' | 'each' | null;

/** As in the purpose (ms); null if absent. */
export type TimeMembers = {
  forMs: number | null;
  noneForMs: number | null;
  maxAgeMs: number | null;
  over: Over | null;
};

/** Prepares a cause for evaluation. */
function compileCause(cause: Cause, group: number): CompiledCause {
  const { thresholds, threshold } = cause;
  const needed = threshold?.count ?? 1;
  const time = timeOf(threshold);
  // The first measurement that disagrees ends a run, and any measurement ends a silence. So `measurement.count` only
  // instructs the device here.
  const isLasting = time?.forMs || time?.noneForMs;
  const windowLength = isLasting ? needed : Math.max(needed, cause.measurement?.count ?? 0);
  const reads = readsOf(thresholds);
  const isPlain = threshold?.relative !== true && threshold?.decimalAcc === undefined;
  const lists = thresholds.isOneOf || thresholds.isNotIn ? thresholds : null;
  return {
    sId: cause.sId,
    group,
    orderId: cause.orderId ?? 0,
    reads,
    thresholds,
    reportedThresholds: withoutLongLists(thresholds),
    reportedThreshold: Object.fromEntries(
      Object.entries(threshold ?? {}).filter(([, value]) => value !== undefined && value !== false),
    ),
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
    keepsBegin: null,
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

/** The cost of copying 12 bins, or the times of 64 outcomes. */
const costOfTime = 16;

/** As measured: a rounding costs 8, each corner of a polygon 3, and 32 numbers of a list cost 1. */
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

/** The longest list that is stored with each event. */
const longestTold = 16;

/** The thresholds that each event reports. */
function withoutLongLists(thresholds: Thresholds): Thresholds {
  const isShort = ([, value]: [string, unknown]) =>
    !Array.isArray(value) || value.length <= longestTold;
  return Object.fromEntries(Object.entries(thresholds).filter(isShort));
}

/** Where a firing moves the device, and whether it enters a purpose or only a state of the current one. */
export type MoveTarget = { place: Place; entersPurpose: boolean };

/** `initStIds`: the initial state of each purpose of the profile, by puId. */
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
  causes: { group: number; reads: string; negate: boolean; time: object | null }[];
  target: { place: Place } | null;
  stId: number;
  actions: Actions;
};

/**
 * Whom firings of an event concern. It is a notice if it cannot be over (all causes, or all of a group, are `isAny`),
 * if it leads back to the purpose's initial state, or if it has `alarm: false`.
 */
function tellsOf(
  { causes, target, stId, actions }: Told,
  { puId, initStId }: { puId: number; initStId: number },
  notifies: boolean,
): Tells {
  if (actions.alarm === true) return notifies ? 'alarm' : 'silent-alarm';
  if (!notifies) return 'nobody';
  if (actions.alarm === false) return 'notice';
  if (causes.length === 0 || isAnyGroupAnything(causes)) return 'notice';
  const leadsBack =
    stId !== initStId && target?.place.puId === puId && target.place.stId === initStId;
  return leadsBack ? 'notice' : 'alarm';
}

const isAnyGroupAnything = (causes: Told['causes']) =>
  [...Map.groupBy(causes, ({ group }) => group).values()].some((alike) => alike.every(isAnything));

function isAnything({ reads, negate, time }: Told['causes'][number]): boolean {
  return reads === 'anything' && !negate && time === null;
}

/** An event, and which of its causes read one sense, with the total cost of these causes (`CompiledCause`). */
export type CauseReader = {
  event: LiveEvent;
  causes: number[];
  /** The groups that these causes are in, as bits: only these may fire the event when the sense is measured. */
  groups: number;
  /**
   * For each cause: above, below, and 1 if negated. Null with groups, and unless all compare with limits only and none
   * is timed.
   */
  limits: Float64Array | null;
  /** Whether all have `limits` and long windows. It can then take many numbers at once (`DeferredNumbers`). */
  isLong: boolean;
  /** Whether these are all of the event's causes, each with `limits` and a window of one outcome. */
  isNewestOnly: boolean;
  cost: number;
  costOfChange: number;
};

/** The readers of each sense, in the order in which they are tried. */
type CausesBySense = ReadonlyMap<string, CauseReader[]>;

/** Indexes some events' causes by sense. */
export function indexCausesBySense(events: LiveEvent[]): CausesBySense {
  const causesBySense = new Map<string, CauseReader[]>();
  for (const event of events) {
    for (const [index, cause] of event.causes.entries()) {
      // A cause that reads nothing collects nothing and never holds.
      if (cause.reads !== 'nothing' || cause.time?.noneForMs)
        addReader(causesBySense, event, index, cause);
    }
  }
  for (const list of causesBySense.values())
    for (const reader of list) {
      const { event, causes } = reader;
      reader.limits = event.isTimed || event.groups ? null : limitsOf(event.causes, causes);
      const isLong = (index: number) => (event.causes[index]?.windowLength ?? 1) > wordBits;
      reader.isLong = reader.limits !== null && causes.every(isLong);
      const isWhole = causes.length === event.causes.length;
      const isSingle = ({ isSingle: single }: CompiledCause) => single;
      // A cause that agrees with every number fires each time, so deferring gains nothing.
      const canDisagree = event.causes.some(({ reads, negate }) => reads === 'numbers' || negate);
      reader.isNewestOnly =
        reader.limits !== null && isWhole && canDisagree && event.causes.every(isSingle);
    }
  return causesBySense;
}

/** Stored side by side, because that reads faster than one cause object after the other. */
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
  { sId, group, cost, costOfChange }: CompiledCause,
): void {
  const known = causesBySense.get(sId);
  const last = known?.at(-1);
  if (last?.event === event) {
    last.causes.push(index);
    last.groups |= 1 << group;
    last.cost += cost;
    last.costOfChange += costOfChange;
    return;
  }
  const reader: CauseReader = {
    event,
    causes: [index],
    groups: 1 << group,
    limits: null,
    isLong: false,
    isNewestOnly: false,
    cost,
    costOfChange,
  };
  if (known) known.push(reader);
  else causesBySense.set(sId, [reader]);
}

/** An upper bound of a measurement's cost, and how much evidence there is: causes, and outcomes in windows. */
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
    for (const { windowLength, time, keepsBegin: keeps } of causes)
      weight.outcomes +=
        windowLength +
        (time ? outcomesOfTime(windowLength, time) : 0) +
        (keeps === 'each' ? outcomesOfBegin * windowLength : 0);
  }
  return weight;
}

/** The events with time members. */
export type Timed = {
  /** Those with a cause that waits for ticks, in order. */
  ticking: LiveEvent[];
  /** Those with a cause that has `noneForMs`. */
  withSilences: LiveEvent[];
  /** By sense: those with a cause that reads it and has `forMs`. */
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

/** The memory that `ts` and arrival of an outcome take, in outcomes of a window. */
const outcomesOfBegin = 48;

/** The memory that time members take, in outcomes of a window. */
function outcomesOfTime(windowLength: number, { over, maxAgeMs }: TimeMembers): number {
  return 600 + (over ? 3_600 : 0) + (maxAgeMs ? 100 * windowLength : 0);
}

/** The senses of each device that a profile is meant for. */
export type DeviceSenses = Sense[][];

/**
 * Devices' senses by name: the ranges of each sense, and the longest `minInterval`, in ms, of those that have one.
 * `tries`: how many more ranges may be checked.
 */
export type KnownSenses = {
  ranges: ReadonlyMap<string, Sense[]>;
  slowest: ReadonlyMap<string, number>;
  tries: number;
};

/** The most ranges to check for one profile. After that nothing is reported as out of range. */
const maxTries = 20_000;

/** Collects by sense what the devices say of it. */
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

/** A measurement's times: `t` is the event time that evaluation uses, `arrivedTs` when the service read it. Ms. */
export type Moment = { t: number; arrivedTs: WallMs };

/** Whom firings concern. A `notice` notifies each time and is not kept; a `silent-alarm` is kept without notifying. */
export type Tells = 'nobody' | 'notice' | 'alarm' | 'silent-alarm';

/** The measurement that something began with: its `ts`, and when it arrived; null: not known. Ms. */
export type Began = { ts: number; arrivedTs: WallMs | null };

/** An event that fired. */
export type Firing = {
  event: SenseEvent;
  /** The event's name in its purpose; empty if it has none. */
  name: string;
  record: boolean;
  actions: Actions;
  tells: Tells;
  /** Whether it is the first of its episode; always true if the event has no episodes (`nobody`, `notice`). */
  isFirst: boolean;
  /**
   * How old the completing measurement was when it arrived, in ms. For a tick: the newest measurement of the cause
   * that it completes. For a silence: 0.
   */
  ageMs: number;
  /** The first measurement of what it fired for; null if that is not known, or if the event has no episodes. */
  began: Began | null;
};

/** A move of the device. There is no `event` if it entered the state it was in. */
export type Transition = { to: Place; event?: DeviceEvent };

/** The results of one measurement, or of one tick. */
export type Evaluated = {
  firings: Firing[];
  transition?: Transition;
  /** Episodes that ended because a cause disagreed. If the event is also in `firings`, its episode ended first. */
  ended: EventName[];
  /** When the measurement arrived; for a tick, when it was due. */
  arrivedTs: WallMs;
};
