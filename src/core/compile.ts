import { compileEvent } from './compile-event.ts';
import type { LiveEvent } from './compile-event.ts';
import type { Purpose } from './purpose.ts';

/** An event and which of its causes read one sense. */
export type Reader = { event: LiveEvent; causes: number[] };
export type Readers = ReadonlyMap<string, Reader[]>;

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
        [...states.values()].flatMap(({ readers }) => [...readers.keys()]),
      ),
    ),
  };
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
  const states = purpose.states.map((state): CompiledState => {
    const events = state.events.map((event) => compileEvent(purpose, state, event, initStIds));
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
  const readers = new Map<string, Reader[]>();
  for (const event of events) {
    for (const sId of new Set(event.causes.map((cause) => cause.sId))) {
      const causes = [...event.causes.keys()].filter((index) => event.causes[index]?.sId === sId);
      const list = readers.get(sId);
      if (list) list.push({ event, causes });
      else readers.set(sId, [{ event, causes }]);
    }
  }
  return readers;
}
