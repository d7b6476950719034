import { compileEvent } from './compile-event.ts';
import type { CompiledCause, LiveEvent } from './compile-event.ts';
import type { Purpose } from './purpose.ts';

/** An event and which of its causes read one sense. */
export type Reader = { event: LiveEvent; causes: number[] };

/** All that read one sense, in the order in which they are tried, and what judging one measurement takes. */
export type SenseReaders = { list: Reader[]; cost: number };
export type Readers = ReadonlyMap<string, SenseReaders>;

export type CompiledState = {
  stId: number;
  isGlobal: boolean;
  events: LiveEvent[];
  readers: Readers;
};

export type CompiledPurpose = {
  puId: number;
  initStId: number;
  states: ReadonlyMap<number, CompiledState>;
  /** Events of every global state, in order. */
  globalEvents: LiveEvent[];
  globalReaders: Readers;
};

/** Purposes laid out for evaluation: from a place and a sense straight to the causes that read it. */
export type Profile = {
  pId: string;
  first: { puId: number; stId: number };
  purposes: ReadonlyMap<number, CompiledPurpose>;
  /** Every sense that any cause of the profile reads. */
  senses: ReadonlySet<string>;
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
    senses: new Set(
      [...compiled.values()].flatMap(({ states }) =>
        [...states.values()].flatMap(({ events }) =>
          events.flatMap(({ causes }) => causes.map(({ sId }) => sId)),
        ),
      ),
    ),
  };
}

/** What judging one measurement of this sense takes at this place, in causes; see `CompiledCause`. */
export function costAt(
  profile: Profile,
  { puId, stId }: { puId: number; stId: number },
  sId: string,
): number {
  const purpose = profile.purposes.get(puId);
  const own = purpose?.states.get(stId)?.readers.get(sId)?.cost ?? 0;
  return own + (purpose?.globalReaders.get(sId)?.cost ?? 0);
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
    return { stId: state.stId, isGlobal: state.isGlobal, events, readers: readersOf(events) };
  });
  const globalEvents = states.flatMap((state) => (state.isGlobal ? state.events : []));
  return {
    puId: purpose.puId,
    initStId: purpose.initStId,
    states: new Map(states.map((state) => [state.stId, state])),
    globalEvents,
    globalReaders: readersOf(globalEvents),
  };
}

function readersOf(events: LiveEvent[]): Readers {
  const readers = new Map<string, SenseReaders>();
  for (const event of events) {
    for (const [index, cause] of event.causes.entries()) {
      // What reads nothing collects nothing, and never holds.
      if (cause.reads !== 'nothing') addReader(readers, event, index, cause);
    }
  }
  return readers;
}

function addReader(
  readers: Map<string, SenseReaders>,
  event: LiveEvent,
  index: number,
  { sId, cost }: CompiledCause,
): void {
  const known = readers.get(sId);
  if (!known) {
    readers.set(sId, { list: [{ event, causes: [index] }], cost });
    return;
  }
  known.cost += cost;
  const last = known.list.at(-1);
  if (last?.event === event) last.causes.push(index);
  else known.list.push({ event, causes: [index] });
}
