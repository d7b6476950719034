import { compileEvent } from './compile-event.ts';
import type { LiveEvent } from './compile-event.ts';
import type { Purpose } from '../contract/purpose.ts';
import { timedOf, outcomesOfTime } from './timed.ts';
import type { Timed } from './timed.ts';
import { readersOf } from './readers.ts';
import type { Readers } from './readers.ts';

/** How much there is to judge and to keep: what a measurement takes at most, causes, and outcomes of windows. */
export type Weight = { judging: number; causes: number; outcomes: number };

export type CompiledState = {
  stId: number;
  /** Empty where it has none. */
  name: string;
  isGlobal: boolean;
  events: LiveEvent[];
  readers: Readers;
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
  globalReaders: Readers;
  globalTimed: Timed;
  globalStaying: LiveEvent[];
  /** Of these alone: where a device stands in a state that the purpose does not have. */
  globalWeight: Weight;
};

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

function compilePurpose(purpose: Purpose, initStIds: ReadonlyMap<number, number>): CompiledPurpose {
  let globals = 0;
  const states = purpose.states.map((state): CompiledState => {
    const first = state.isGlobal ? globals : 0;
    const events = state.events.map((event, index) =>
      compileEvent(purpose, state, event, first + index, initStIds),
    );
    if (state.isGlobal) globals += events.length;
    const readers = readersOf(events);
    const weight = weightOf(events, readers);
    const { stId, name = '', isGlobal } = state;
    const timed = timedOf(events);
    const staying = isGlobal ? [] : events.filter(stays);
    return { stId, name, isGlobal, events, readers, timed, staying, weight };
  });
  const globalEvents = states.flatMap((state) => (state.isGlobal ? state.events : []));
  const globalReaders = readersOf(globalEvents);
  const globalWeight = weightOf(globalEvents, globalReaders);
  for (const state of states) state.weight = sumOf(state.weight, globalWeight);
  return {
    puId: purpose.puId,
    name: purpose.name ?? '',
    initStId: purpose.initStId,
    states: new Map(states.map((state) => [state.stId, state])),
    globalEvents,
    globalReaders,
    globalTimed: timedOf(globalEvents),
    globalStaying: globalEvents.filter(stays),
    globalWeight,
  };
}

const stays = ({ staysAtReentry }: LiveEvent) => staysAtReentry;

function hasTime({ states }: CompiledPurpose): boolean {
  return [...states.values()].some(({ events }) => events.some(({ isTimed }) => isTimed));
}

function sumOf(own: Weight, global: Weight): Weight {
  return {
    judging: own.judging + global.judging,
    causes: own.causes + global.causes,
    outcomes: own.outcomes + global.outcomes,
  };
}

function weightOf(events: LiveEvent[], readers: Readers): Weight {
  const weight: Weight = { judging: 0, causes: 0, outcomes: 0 };
  for (const list of readers.values()) {
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
