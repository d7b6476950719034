import { z } from 'zod';
import type { Problem } from '../errors.ts';
import { countJsonBytes } from '../lib/json.ts';
import { Actions, listPhoneMessages } from './actions.ts';
import type { Configuration } from './configuration.ts';
import {
  duration,
  integer,
  integer32,
  oneMinute,
  oneSecond,
  OverStat,
  Position,
  Text,
} from './values.ts';

/** A problem in how the parts of a purpose fit together. */
type StructuralProblem = { path: (string | number)[]; message: string };

/** A cause as far as it could be read: any member may be missing or of another type. */
type ReadableCause = { threshold?: unknown; thresholds?: unknown; measurement?: unknown };

type Members = Record<string, unknown>;
type Path = (string | number)[];

/** The longest window of a cause with `maxAgeMs`, which keeps the time of each of its outcomes. */
const maxAgedCount = 64;

/** Members of a cause that contradict its conditions on time, each with what to write instead. */
function timeProblems(cause: ReadableCause, path: Path): StructuralProblem[] {
  const threshold = membersOf(cause.threshold);
  const thresholds = membersOf(cause.thresholds);
  return [
    ...silenceProblems(threshold, thresholds, path),
    ...overProblems(threshold, thresholds, path),
    ...agedProblems(threshold, membersOf(cause.measurement), path),
  ];
}

/** A silence has no value to compare. */
function silenceProblems(threshold: Members, thresholds: Members, path: Path): StructuralProblem[] {
  if (threshold['noneForMs'] === undefined) return [];
  const compared = Object.keys(thresholds).filter((member) => isGiven(thresholds[member]));
  const beside = ['forMs', 'over', 'maxAgeMs', 'decimalAcc', 'negate', 'relative'].filter(
    (member) => isGiven(threshold[member]),
  );
  const { count = 1 } = threshold;
  if (count !== 1) beside.push('count');
  return [
    ...compared.map((member) => ({ path: [...path, 'thresholds', member], member })),
    ...beside.map((member) => ({ path: [...path, 'threshold', member], member })),
  ].map(({ path: at, member }) => ({ path: at, message: besideSilence(member) }));
}

function besideSilence(member: string): string {
  const hint =
    member === 'forMs' || member === 'maxAgeMs'
      ? 'noneForMs alone sets the duration'
      : 'put the comparison into another cause or another event';
  return `noneForMs waits for silence, so it cannot be combined with ${member}: ${hint}`;
}

function overProblems(
  { over, relative }: Members,
  { isInsideGeo }: Members,
  path: Path,
): StructuralProblem[] {
  if (over === undefined) return [];
  const problems: StructuralProblem[] = [];
  if (isGiven(relative)) {
    const message = 'over cannot be combined with relative: its stat "delta" compares the change';
    problems.push({ path: [...path, 'threshold', 'relative'], message });
  }
  if (isInsideGeo !== undefined) {
    const message = 'over is a statistic of numbers: use a separate cause for the polygon';
    problems.push({ path: [...path, 'thresholds', 'isInsideGeo'], message });
  }
  return problems;
}

function agedProblems(
  { maxAgeMs, count }: Members,
  measurement: Members,
  path: Path,
): StructuralProblem[] {
  if (maxAgeMs === undefined) return [];
  const problemOf = (value: unknown, at: Path): StructuralProblem[] => {
    if (typeof value !== 'number' || value <= maxAgedCount) return [];
    const message = `with maxAgeMs it is at most ${maxAgedCount}`;
    return [{ path: [...path, ...at], message }];
  };
  return [
    ...problemOf(count, ['threshold', 'count']),
    ...problemOf(measurement['count'], ['measurement', 'count']),
  ];
}

/** `false` counts as absent. */
const isGiven = (value: unknown) => value !== undefined && value !== false;

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

/** A purpose as far as it could be read: any part may be missing or of another type. */
type Readable = { initStId?: unknown; states?: unknown };
type ReadableState = { stId?: unknown; events?: unknown };
type ReadableEvent = {
  evId?: unknown;
  actions?: { engine?: { gotoStId?: unknown; gotoPuId?: unknown } };
  causes?: unknown;
  anyOf?: unknown;
};

/** Largest purpose, in bytes of its JSON. */
const maxPurposeBytes = 256 * 1024;

/**
 * Contradictions between members of a purpose: two states or events with the same number, a reference to a missing
 * state, conditions on time that exclude each other, a size beyond 256 KiB. Also checks purposes that are invalid in
 * other ways.
 */
function structuralProblems(purpose: Readable | undefined): StructuralProblem[] {
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
    const listed = listOf<ReadableCause>(event.causes).entries();
    const all = [...listed].map(([c, cause]) => ({ cause, at: [...path, e, 'causes', c] }));
    const groups = Array.isArray(event.anyOf) ? event.anyOf : [];
    for (const [g, group] of groups.entries())
      for (const [c, cause] of listOf<ReadableCause>(group).entries())
        all.push({ cause, at: [...path, e, 'anyOf', g, c] });
    for (const { cause, at } of all) problems.push(...timeProblems(cause, at));
    if (groups.length === 0) continue;
    const at = [...path, e, 'anyOf'];
    if (listOf(event.causes).length > 0)
      problems.push({ path: at, message: 'an event has either causes or anyOf, not both' });
    if (all.length > maxCauses) {
      const message = `the groups have at most ${maxCauses} causes together, these have ${all.length}`;
      problems.push({ path: at, message });
    }
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
    const message = `${key} ${id} is already used by /${[...path, first].join('/')}`;
    return [{ path: [...path, index, key], message }];
  });
}

/** The objects in what should be an array, at their original indexes. */
function listOf<T extends object>(value: unknown): T[] {
  if (!Array.isArray(value)) return [];
  return value.map((item: unknown) => (typeof item === 'object' && item !== null ? item : {}) as T);
}

/** The most causes of an event, in all of its groups. */
const maxCauses = 32;

/** The longest window. It keeps a device's evidence small enough to be written with every message. */
const maxCount = 1_000;

/** Specification section 2.5: "One sample gives it as the string form of a boolean." */
const BooleanOrText = z.union(
  [
    z.boolean(),
    z
      .enum(['true', 'false'])
      .transform((text) => text === 'true')
      .pipe(z.boolean()),
  ],
  'expected a boolean, or "true" or "false" as text',
);

/** Conditions on one measurement. All that are present must agree. */
export const Thresholds = z
  .object({
    isOneOf: z.array(z.number()).optional(),
    isGt: z.number().optional(),
    isLt: z.number().optional(),
    isNotIn: z.array(z.number()).optional(),
    isAny: z.boolean().optional(),
    isInsideGeo: z.array(Position).min(3, 'a polygon needs at least 3 points').optional(),
  })
  .meta({ id: 'Thresholds' });
export type Thresholds = z.infer<typeof Thresholds>;

/**
 * `measurement` instructs the device, except for its `count`, which is also the length of the window. `forMs`,
 * `noneForMs`, `maxAgeMs` and `over` are conditions on time, in ms: docs/engine.md.
 */
export const Cause = z
  .object({
    sId: Text.min(1),
    orderId: integer32.optional(),
    senseLog: z.boolean().default(false),
    measurement: z
      .object({
        log: BooleanOrText.default(false),
        interval: integer(0, Number.MAX_SAFE_INTEGER).optional(),
        count: integer(0, maxCount).optional(),
      })
      .meta({ id: 'MeasurementInstruction' })
      .optional(),
    threshold: z
      .object({
        count: integer(1, maxCount).optional(),
        negate: z.boolean().default(false),
        relative: z.boolean().default(false),
        decimalAcc: integer(0, 20).optional(),
        forMs: duration(oneSecond).optional().meta({
          description: 'The cause holds once its measurements have agreed for this long, in ms.',
        }),
        noneForMs: duration(oneSecond).optional().meta({
          description:
            'The cause holds once nothing was measured for this long, in ms. It has no thresholds.',
        }),
        maxAgeMs: duration(oneSecond).optional().meta({
          description:
            "Measurements older than this, relative to the event's newest, do not count, in ms.",
        }),
        over: z
          .object({ ms: duration(oneMinute), stat: OverStat })
          .meta({ id: 'OverTime' })
          .optional()
          .meta({
            description: 'Compares a statistic over the last `ms` instead of a single value.',
          }),
      })
      .meta({ id: 'ThresholdRule' })
      .optional(),
    thresholds: Thresholds.default({}),
  })
  .meta({ id: 'Cause' });
export type Cause = z.infer<typeof Cause>;

export const PurposeEvent = z
  .object({
    evId: integer32,
    name: Text.optional(),
    eventLog: z.boolean().default(false),
    actions: Actions.default({}),
    causes: z.array(Cause).max(maxCauses).default([]),
    anyOf: z
      .array(z.array(Cause).min(1, 'a group has at least one cause'))
      .min(1, 'expected at least one group of causes')
      .max(maxCauses)
      .optional()
      .meta({
        description:
          'In place of `causes`: groups of causes. The event fires when all causes of one group hold.',
      }),
  })
  .meta({ id: 'PurposeEvent' });
export type PurposeEvent = z.infer<typeof PurposeEvent>;

/**
 * All causes of an event, those of `anyOf` group after group. `at`: the path in the event, `causes/0` or `anyOf/1/0`;
 * `group`: counted from 0, also without `anyOf`.
 */
export function listCauses({
  causes,
  anyOf,
}: Pick<PurposeEvent, 'causes' | 'anyOf'>): { cause: Cause; at: string; group: number }[] {
  if (!anyOf) return causes.map((cause, c) => ({ cause, at: `causes/${c}`, group: 0 }));
  return anyOf.flatMap((list, group) =>
    list.map((cause, c) => ({ cause, at: `anyOf/${group}/${c}`, group })),
  );
}

export const State = z
  .object({
    stId: integer32,
    name: Text.optional(),
    isGlobal: z.boolean().default(false),
    events: z.array(PurposeEvent).max(64).default([]),
  })
  .meta({ id: 'State' });
export type State = z.infer<typeof State>;

/** The most structural problems that are listed: each costs more than the part that has it. */
const maxStructural = 100;

/**
 * States, their events, and the events' causes and actions; specification section 2.5. Parsing lists all problems at
 * once, and drops unknown fields.
 */
export const Purpose = z
  .object({
    puId: integer32,
    name: Text.optional(),
    initStId: integer32,
    states: z.array(State).max(256),
  })
  .superRefine(
    (purpose, context) => {
      for (const { path, message } of structuralProblems(purpose).slice(0, maxStructural)) {
        context.addIssue({ code: 'custom', path, message });
      }
    },
    // A field of the wrong type must not hide other problems.
    { when: () => true },
  )
  .meta({ id: 'Purpose' });
export type Purpose = z.infer<typeof Purpose>;

/** The JSON Pointer to the purpose at `index`, for problems. */
export type PurposePath = (index: number) => string;

/** Size limits: characters of a name and of another text, senses of a device. */
export type Sizes = { nameLength: number; textLength: number; sensesPerDevice: number };

/** °C, mg/m³, L/min: the unit follows each value in a message. */
const maxUnitLength = 20;

/** Texts of a device's description, and lists of senses, that exceed the limits. */
export function checkConfigurationSizes(
  { device, module }: Configuration,
  sizes: Sizes,
): Problem[] {
  const { name, ...texts } = device;
  const problems = tooLong(name, sizes.nameLength, '/device/name');
  for (const [field, text] of Object.entries(texts))
    problems.push(...tooLong(text, sizes.textLength, `/device/${field}`));
  const senses = module.reduce((sum, one) => sum + one.senses.length, 0);
  for (const [what, count] of Object.entries({ modules: module.length, senses })) {
    if (count <= sizes.sensesPerDevice) continue;
    const message = `a device has at most ${sizes.sensesPerDevice} ${what}, this one has ${count}`;
    return [...problems, { path: '/module', message }];
  }
  for (const [m, { moduleId, moduleName, senses }] of module.entries()) {
    problems.push(...tooLong(moduleId, sizes.nameLength, `/module/${m}/moduleId`));
    problems.push(...tooLong(moduleName, sizes.nameLength, `/module/${m}/moduleName`));
    for (const [s, { sId, name: senseName, unit }] of senses.entries()) {
      const at = `/module/${m}/senses/${s}`;
      problems.push(
        ...tooLong(sId, sizes.nameLength, `${at}/sId`),
        ...tooLong(senseName, sizes.nameLength, `${at}/name`),
        ...tooLong(unit, maxUnitLength, `${at}/unit`),
      );
    }
  }
  return problems;
}

/** Names and texts of a purpose that exceed the limits. `path`: where the purpose is. */
export function checkPurposeSizes(
  purpose: Purpose,
  { nameLength, textLength }: Sizes,
  path = '',
): Problem[] {
  const problems = tooLong(purpose.name, nameLength, `${path}/name`);
  for (const [s, state] of purpose.states.entries()) {
    problems.push(...tooLong(state.name, nameLength, `${path}/states/${s}/name`));
    for (const [e, event] of state.events.entries()) {
      const { name, actions } = event;
      const at = `${path}/states/${s}/events/${e}`;
      problems.push(
        ...tooLong(name, nameLength, `${at}/name`),
        ...listPhoneMessages(actions).flatMap(({ channel, text }) =>
          tooLong(text, textLength, `${at}/actions/${channel}/text`),
        ),
        ...tooLong(actions.display?.showText, textLength, `${at}/actions/display/showText`),
      );
      for (const { cause, at: inEvent } of listCauses(event))
        problems.push(...tooLong(cause.sId, nameLength, `${at}/${inEvent}/sId`));
    }
  }
  return problems;
}

/** The first `length` characters of a text. */
export function cutText(text: string, length: number): string {
  return text.length <= length
    ? text
    : Array.from(text.slice(0, 2 * length))
        .slice(0, length)
        .join('');
}

/** Counts characters as code points, as people do. One has at most two UTF-16 code units. */
function tooLong(text: string | undefined, length: number, path: string): Problem[] {
  if (text === undefined || text.length <= length) return [];
  if (text.length <= 2 * length && Array.from(text).length <= length) return [];
  return [{ path, message: `expected at most ${length} characters` }];
}
