import { compileEvent } from './compile-event.ts';
import type { LiveEvent } from './compile-event.ts';
import type { Purpose } from '../contract/purpose.ts';
import { readersOf } from './readers.ts';
import type { Readers } from './readers.ts';
import { timedOf } from './timed.ts';
import type { Timed } from './timed.ts';
import { sumOf, weightOf } from './weight.ts';
import type { Weight } from './weight.ts';

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

/** `initStIds`: where each purpose of the profile begins, by puId. */
export function compilePurpose(
  purpose: Purpose,
  initStIds: ReadonlyMap<number, number>,
): CompiledPurpose {
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
