import type { LiveEvent } from './compile-event.ts';
import { compilePurpose } from './compile-purpose.ts';
import type { CompiledPurpose } from './compile-purpose.ts';
import type { Purpose } from '../contract/purpose.ts';

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
