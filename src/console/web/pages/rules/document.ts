import type { ProfileSpan } from '../../api/types.ts';

/**
 * A rule while somebody edits it: a purpose as JSON. It is the only truth of the editor: form, diagram and text show
 * it, and change members at their place. What they do not know stays as it is.
 */
export type Rule = Members & { states: readonly State[] };
export type State = Members & { stId: number; events: readonly RuleEvent[] };
export type RuleEvent = Members & { evId: number; causes: readonly Members[] };

export type Members = Readonly<Record<string, unknown>>;
/** Where something is: `['states', 0, 'name']`. */
export type Path = readonly (string | number)[];

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The members of an object; none if it is something else. */
export const membersOf = (value: unknown): Members => (isMembers(value) ? value : {});

/** The conditions of an event in groups, of which one is enough: those of `anyOf`, otherwise its `causes`. */
export function groupsOf({ anyOf, causes }: RuleEvent): (readonly Members[])[] {
  if (!Array.isArray(anyOf)) return [causes];
  return anyOf.map((group: unknown) => (Array.isArray(group) ? group.map(membersOf) : []));
}

/** Where a condition of these groups is in its event. */
export const placeOfCause = ({ anyOf }: RuleEvent, group: number, place: number): Path =>
  Array.isArray(anyOf) ? ['anyOf', group, place] : ['causes', place];

/** The event with other groups, without those that are empty: one as `causes`, several as `anyOf`. */
export function withGroups(event: RuleEvent, groups: readonly (readonly Members[])[]): RuleEvent {
  const some = groups.filter((group) => group.length > 0);
  if (some.length > 1) return { ...event, causes: [], anyOf: some };
  return withAt({ ...event, causes: some[0] ?? [] }, ['anyOf'], undefined);
}

/** What is at a place; undefined if there is nothing. */
export function valueAt(value: unknown, path: Path): unknown {
  let at = value;
  for (const step of path) {
    if (typeof at !== 'object' || at === null) return undefined;
    at = (at as Record<string | number, unknown>)[step];
  }
  return at;
}

/** The same with another value at a place; undefined removes a member, and an element of a list. */
export function withAt<T>(value: T, [step, ...rest]: Path, next: unknown): T {
  if (step === undefined) return next as T;
  if (Array.isArray(value) && typeof step === 'number') {
    if (rest.length === 0 && next === undefined) return value.toSpliced(step, 1) as T;
    return value.with(step, withAt(value[step], rest, next)) as T;
  }
  const { [step]: before, ...others } = membersOf(value);
  const after = withAt(before, rest, next);
  if (after === undefined) return others as T;
  // In its place: somebody may read the JSON beside it.
  return (isMembers(value) ? { ...value, [step]: after } : { [step]: after }) as T;
}

/**
 * Reads JSON into what the editor can show: lists of objects where it expects them, empty ones where they are missing.
 * Gives the place of what is something else.
 */
export function readRule(value: unknown): { rule: Rule } | { wrongAt: Path } {
  if (!isMembers(value)) return { wrongAt: [] };
  const { states = [] } = value;
  if (!isList(states)) return { wrongAt: ['states'] };
  const read: State[] = [];
  for (const [s, state] of states.entries()) {
    const at = ['states', s];
    const { stId, events = [] } = state;
    if (typeof stId !== 'number') return { wrongAt: [...at, 'stId'] };
    if (!isList(events)) return { wrongAt: [...at, 'events'] };
    const readEvents: RuleEvent[] = [];
    for (const [e, event] of events.entries()) {
      const { evId, causes = [], actions = {} } = event;
      const here = [...at, 'events', e];
      if (typeof evId !== 'number') return { wrongAt: [...here, 'evId'] };
      if (!isList(causes)) return { wrongAt: [...here, 'causes'] };
      if (!isMembers(actions)) return { wrongAt: [...here, 'actions'] };
      readEvents.push({ ...event, evId, causes });
    }
    read.push({ ...state, stId, events: readEvents });
  }
  return { rule: { ...value, states: read } };
}

const isList = (value: unknown): value is Members[] =>
  Array.isArray(value) && value.every(isMembers);

/** What is selected: a state, or one of its events, by their numbers, which stay when others go. */
export type Selected = { stId: number; evId?: number };

/** The place of what is selected; null if it is gone. */
export function pathOf({ states }: Rule, { stId, evId }: Selected): Path | null {
  const s = states.findIndex((state) => state.stId === stId);
  if (s < 0) return null;
  if (evId === undefined) return ['states', s];
  const e = states[s]?.events.findIndex((event) => event.evId === evId) ?? -1;
  return e < 0 ? null : ['states', s, 'events', e];
}

/** The first event, or the first state if that has none; null: there is no state. */
export const firstOf = ({ states }: Rule): Selected | null => {
  const [state] = states;
  const [event] = state?.events ?? [];
  return state ? { stId: state.stId, ...(event ? { evId: event.evId } : {}) } : null;
};

/** The lowest number that none of them has. */
export function freeNumber(taken: readonly number[]): number {
  let number = 1;
  while (taken.includes(number)) number += 1;
  return number;
}

/** Adds a state without events. The first one is where the rule begins. */
export function addState(rule: Rule, name: string): { rule: Rule; selected: Selected } {
  const stId = freeNumber(rule.states.map((state) => state.stId));
  const states = [...rule.states, { stId, name, events: [] }];
  const isFirst = rule.states.length === 0;
  return { rule: { ...rule, ...(isFirst ? { initStId: stId } : {}), states }, selected: { stId } };
}

/** A condition of a sensor, to begin with. */
export const newCause = (sId: string): Members => ({ sId, orderId: 1, thresholds: { isGt: 0 } });

/** Adds an event to a state, with an alarm that people are notified of. `gotoStId`: it moves the device instead. */
export function addEvent(
  rule: Rule,
  { stId }: Selected,
  { name, sId, gotoStId }: { name: string; sId: string; gotoStId?: number },
): { rule: Rule; selected: Selected } {
  const s = rule.states.findIndex((state) => state.stId === stId);
  const events = rule.states[s]?.events ?? [];
  const evId = freeNumber(events.map((event) => event.evId));
  const actions =
    gotoStId === undefined ? { alarm: true, cloud: { sendPush: true } } : { engine: { gotoStId } };
  const event = { evId, name, eventLog: true, causes: [newCause(sId)], actions };
  return {
    rule: withAt(rule, ['states', s, 'events'], [...events, event]),
    selected: { stId, evId },
  };
}

/** Removes a state or an event. What led to a state that is gone leads nowhere. */
export function remove(rule: Rule, selected: Selected): Rule {
  const path = pathOf(rule, selected);
  if (path === null) return rule;
  const without = withAt(rule, path, undefined);
  if (selected.evId !== undefined) return without;
  const states = without.states.map((state) => ({
    ...state,
    events: state.events.map((event) => leadsTo(event, selected.stId)),
  }));
  const [first] = states;
  const begins = rule['initStId'] === selected.stId && first ? { initStId: first.stId } : {};
  return { ...without, ...begins, states };
}

function leadsTo(event: RuleEvent, goneStId: number): RuleEvent {
  const { gotoStId, gotoPuId, ...others } = membersOf(valueAt(event, ['actions', 'engine']));
  if (gotoStId !== goneStId || gotoPuId !== undefined) return event;
  const left = Object.keys(others).length === 0 ? undefined : others;
  return withAt(event, ['actions', 'engine'], left);
}

/**
 * If what was recorded of a device in that time is about this rule: it had a rule with its number, and none with the
 * same number and another name.
 */
export function isOn(
  profiles: readonly ProfileSpan[],
  rule: Rule,
  { start, end }: { start: number; end: number },
): boolean {
  const names = profiles
    .filter(({ fromTs, untilTs }) => fromTs <= end && (untilTs ?? end) >= start)
    .flatMap(({ purposes }) => purposes ?? [])
    .flatMap(({ puId, name = '' }) => (puId === rule['puId'] ? [name] : []));
  return names.length > 0 && names.every((name) => name === (rule['name'] ?? ''));
}

/** What was before and after, for undoing; `key`: typing in one field is one step. */
export type History = {
  now: Rule;
  past: readonly Rule[];
  future: readonly Rule[];
  key: string | null;
};

const mostSteps = 200;

export const beginHistory = (rule: Rule): History => ({
  now: rule,
  past: [],
  future: [],
  key: null,
});

export function edit(history: History, next: Rule, key: string | null = null): History {
  const { now, past } = history;
  if (next === now) return history;
  const isSameStep = key !== null && key === history.key;
  return {
    now: next,
    past: isSameStep ? past : [...past, now].slice(-mostSteps),
    future: [],
    key,
  };
}

export function undo({ now, past, future, ...rest }: History): History {
  const before = past.at(-1);
  if (!before) return { now, past, future, ...rest };
  return { now: before, past: past.slice(0, -1), future: [now, ...future], key: null };
}

export function redo({ now, past, future, ...rest }: History): History {
  const [after, ...later] = future;
  if (!after) return { now, past, future, ...rest };
  return { now: after, past: [...past, now], future: later, key: null };
}
