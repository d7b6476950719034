import { countJsonBytes } from '../lib/json-bytes.ts';
import { timeProblems } from './time-structure.ts';
import type { ReadableCause, StructuralProblem } from './time-structure.ts';

/** A purpose as far as it could be read: any part may be missing or of another type. */
type Readable = { initStId?: unknown; states?: unknown };
type ReadableState = { stId?: unknown; events?: unknown };
type ReadableEvent = {
  evId?: unknown;
  actions?: { engine?: { gotoStId?: unknown; gotoPuId?: unknown } };
  causes?: unknown;
};

/** Largest purpose, in bytes of its JSON. */
const maxPurposeBytes = 256 * 1024;

/**
 * What a purpose's own members contradict: two states or events with one number, a state that is
 * referred to and not there, conditions on time that exclude each other, a size beyond 256 KiB. Reads purposes
 * that are wrong in other ways too.
 */
export function structuralProblems(purpose: Readable | undefined): StructuralProblem[] {
  if (typeof purpose !== 'object' || purpose === null) return [];
  const states = listOf<ReadableState>(purpose.states);
  const stIds = new Set(states.map((state) => state.stId));
  const problems = [
    ...duplicates(states, 'stId', ['states']),
    ...states.flatMap((state, s) => eventProblems(state, stIds, ['states', s, 'events'])),
  ];
  const { initStId } = purpose;
  if (Array.isArray(purpose.states) && typeof initStId === 'number' && !stIds.has(initStId)) {
    problems.push({ path: ['initStId'], message: `no state has the stId ${initStId}` });
  }
  const bytes = countJsonBytes(purpose);
  if (bytes > maxPurposeBytes) {
    const message = `a purpose has at most ${maxPurposeBytes} bytes, this one has ${bytes}`;
    problems.push({ path: [], message });
  }
  return problems;
}

function eventProblems(
  state: ReadableState,
  stIds: Set<unknown>,
  path: (string | number)[],
): StructuralProblem[] {
  const events = listOf<ReadableEvent>(state.events);
  const problems = duplicates(events, 'evId', path);
  for (const [e, event] of events.entries()) {
    const { gotoStId, gotoPuId } = event.actions?.engine ?? {};
    if (typeof gotoStId === 'number' && gotoPuId === undefined && !stIds.has(gotoStId)) {
      const message = `no state has the stId ${gotoStId}`;
      problems.push({ path: [...path, e, 'actions', 'engine', 'gotoStId'], message });
    }
    for (const [c, cause] of listOf<ReadableCause>(event.causes).entries())
      problems.push(...timeProblems(cause, [...path, e, 'causes', c]));
  }
  return problems;
}

function duplicates<K extends string>(
  items: { [key in K]?: unknown }[],
  key: K,
  path: (string | number)[],
): StructuralProblem[] {
  const firstWith = new Map<unknown, number>();
  return items.flatMap((item, index) => {
    const id = item[key];
    const first = firstWith.get(id);
    if (first === undefined) firstWith.set(id, index);
    if (first === undefined || typeof id !== 'number') return [];
    const message = `${key} ${id} is taken by /${[...path, first].join('/')}`;
    return [{ path: [...path, index, key], message }];
  });
}

/** The objects of what should be an array; their places are kept. */
function listOf<T extends object>(value: unknown): T[] {
  if (!Array.isArray(value)) return [];
  return value.map((item: unknown) => (typeof item === 'object' && item !== null ? item : {}) as T);
}
