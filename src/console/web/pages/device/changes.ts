import { nameOfSense } from '../../api/devices.ts';
import type { Purpose, Sense } from '../../api/types.ts';
import { changes as de } from '../../text/de/changes.ts';
import { changes as en } from '../../text/en/changes.ts';
import { formatDuration, formatTyped } from '../../text/format.ts';
import { t, textsOf } from '../../text/t.ts';
import { listDoes, nameOfPurpose, nameOfState, sayCause, sayDoes, sayWhen } from './purposes.tsx';

const text = textsOf(en, de);

type State = Purpose['states'][number];
type Event = State['events'][number];
type Cause = Event['causes'][number];
type Senses = ReadonlyMap<string, Sense>;
/** A purpose before and after. */
type Sides = { before: Purpose; after: Purpose; senses: Senses };

/** What is other in a purpose: a sentence for each, such as "Too warm: limit of Temperature 8 °C → 6 °C". */
export function sayChanges(before: Purpose, after: Purpose, senses: Senses): string[] {
  if (isSame(before, after)) return [];
  const sides = { before, after, senses };
  const said = [
    ...(before.name === after.name
      ? []
      : [text('ruleName', { before: nameOfPurpose(before), after: nameOfPurpose(after) })]),
    ...(before.initStId === after.initStId ? [] : [text('begins', { state: beginOf(after) })]),
    ...pairs(before.states, after.states, ({ stId }) => stId).flatMap(([old, next]) =>
      sayState(old, next, sides),
    ),
  ];
  // Members that no sentence knows, such as how a value is rounded.
  return said.length === 0 ? [text('other')] : said;
}

/** The same JSON, in any order of members. */
const isSame = (one: unknown, other: unknown) => sortedJson(one) === sortedJson(other);

const sortedJson = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );

const beginOf = ({ states, initStId }: Purpose) => {
  const state = states.find(({ stId }) => stId === initStId);
  return state ? nameOfState(state) : String(initStId);
};

/** Of both lists, those with the same number together; undefined where one list has none. */
function pairs<T>(
  before: readonly T[],
  after: readonly T[],
  numberOf: (one: T) => number,
): [T | undefined, T | undefined][] {
  const find = (list: readonly T[], number: number) => list.find((one) => numberOf(one) === number);
  const numbers = new Set([...before, ...after].map(numberOf));
  return [...numbers].map((number) => [find(before, number), find(after, number)]);
}

function sayState(old: State | undefined, next: State | undefined, sides: Sides): string[] {
  if (!next) return old ? [text('stateGoes', { state: nameOfState(old) })] : [];
  const added = old ? [] : [text('stateComes', { state: nameOfState(next) })];
  const name = nameOfState(next);
  return [
    ...added,
    ...(old && nameOfState(old) !== name
      ? [text('stateName', { before: nameOfState(old), after: name })]
      : []),
    ...(!old || old.isGlobal === next.isGlobal
      ? []
      : [text(next.isGlobal ? 'everywhere' : 'notEverywhere', { state: name })]),
    ...pairs(old?.events ?? [], next.events, ({ evId }) => evId).flatMap(([was, is]) =>
      sayEvent(was, is, next.stId, sides),
    ),
  ];
}

const nameOfEvent = ({ name, evId }: Event) => name || t('event.unknown', { id: evId });

function sayEvent(
  was: Event | undefined,
  is: Event | undefined,
  stId: number,
  { before, after, senses }: Sides,
): string[] {
  if (!is) return was ? [text('eventGoes', { event: nameOfEvent(was) })] : [];
  const event = nameOfEvent(is);
  if (!was) {
    const said = `${sayWhen(is, senses)}. ${sayDoes(is, stId, after, [after])}`;
    return [text('eventComes', { event, said })];
  }
  if (isSame(was, is)) return [];
  const renamed =
    nameOfEvent(was) === event
      ? []
      : [text('eventName', { before: nameOfEvent(was), after: event })];
  const changes = [
    ...sayCauses(was, is, senses),
    ...sayActions(listDoes(was, stId, before, [before]), listDoes(is, stId, after, [after])),
    ...saySms(was, is),
  ];
  const isOther = changes.length === 0 && renamed.length === 0;
  if (isOther || !isSame(unsaidOf(was), unsaidOf(is))) changes.push(text('other'));
  return [...renamed, ...changes.map((change) => `${event}: ${change}`)];
}

/** What no sentence says of an event. */
const unsaidOf = ({ name: _n, causes: _c, anyOf: _a, eventLog: _e, actions, ...event }: Event) => {
  const { alarm: _, severity: _s, keepMs: _k, repeatMs: _r, cloud: _p, ...rest } = actions;
  const { sms: _sms, display: _d, engine: _g, ...others } = rest;
  return { ...event, actions: others };
};

function saySms({ actions: was }: Event, { actions: is }: Event): string[] {
  const [before, after] = [was.sms?.text, is.sms?.text];
  return before === undefined || after === undefined || before === after
    ? []
    : [text('smsText', { before, after })];
}

function sayCauses(was: Event, is: Event, senses: Senses): string[] {
  // Otherwise it is not clear which became which.
  if (!was.anyOf && !is.anyOf && was.causes.length === is.causes.length)
    return was.causes.flatMap((cause, place) => {
      const next = is.causes[place] as Cause;
      return isSame(cause, next) ? [] : sayCauseChange(cause, next, senses);
    });
  const [before, after] = [sayWhen(was, senses), sayWhen(is, senses)];
  return before === after ? [] : [text('became', { before, after })];
}

/** Numbers that are other, by their names; otherwise the condition before and after. */
function sayCauseChange(was: Cause, is: Cause, senses: Senses): string[] {
  const sense = senses.get(is.sId);
  const name = nameOfSense(is.sId, sense);
  const limit = (value: number) => formatTyped(value, { unit: sense?.unit });
  const numbers = [
    { of: 'thresholds', member: 'isGt', key: 'limit', say: limit },
    { of: 'thresholds', member: 'isLt', key: 'limit', say: limit },
    { of: 'threshold', member: 'forMs', key: 'delay', say: formatDuration },
    { of: 'threshold', member: 'noneForMs', key: 'silence', say: formatDuration },
  ] as const;
  const said: string[] = [];
  type Groups = Partial<Record<string, Record<string, unknown>>>;
  const left = structuredClone(was) as object as Groups;
  for (const { of, member, key, say } of numbers) {
    const before = left[of]?.[member];
    const after = (is as object as Groups)[of]?.[member];
    if (typeof before !== 'number' || typeof after !== 'number' || before === after) continue;
    said.push(text(key, { name, before: say(before), after: say(after) }));
    (left[of] as Record<string, unknown>)[member] = after;
  }
  if (isSame(left, is)) return said;
  const [before, after] = [sayCause(was, senses.get(was.sId)), sayCause(is, sense)];
  return before === after ? said : [text('became', { before, after })];
}

function sayActions(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((what) => {
    const [was, is] = [before.get(what), after.get(what)];
    if (was === is) return [];
    if (was === undefined) return [text('now', { said: is ?? '' })];
    return [
      is === undefined
        ? text('noLonger', { said: was })
        : text('became', { before: was, after: is }),
    ];
  });
}
