import { z } from 'zod';
import type { Problem } from '../errors.ts';
import { namesOf, stateQuery } from '../http/schema.ts';

/**
 * The filters of events. Everything that depends on which filters exist follows from `filters` below: the parameters
 * of the routes and their reference, the SQL that finds events, and the predicate that chooses what a stream is sent.
 * `findContradictions` says which of them exclude each other.
 */

/** What is known of an event, in the table, the feed and a stream. */
type Filtered = { type: string; body: object };

type Filter = {
  /** The query parameter. Parsed, it is the texts of which an event must have one; empty or absent: any event. */
  query: z.ZodType<string[] | undefined, string | undefined>;
  /** The texts of an event that are compared. */
  textsOf: (event: Filtered) => string[];
} & (
  | { /** The index that finds the events, by its table and column. */ index: EventIndex }
  | { /** The text of an event `e`, as SQL. No index has it. */ sql: string }
);

type EventIndex = { table: 'event' | 'event_sense'; column: string; /** As SQL. */ type: string };

const engine = `(body::json -> 'cause' -> 'engine')`;

/** An index finds these, so a page of a list costs the same however long the history is. */
const indexed = {
  type: {
    query: z
      .enum(['device', 'sense'])
      .transform((type): string[] => [type])
      .optional()
      .meta({ description: 'Only events of this type.' }),
    textsOf: ({ type }) => [type],
    index: { table: 'event', column: 'type', type: 'e.type' },
  },
  senses: {
    query: z
      .string()
      .transform(namesOf)
      .refine((senses) => senses.length <= 256, 'names more than 256 senses')
      .optional()
      .meta({
        description: 'Only sense events with at least one of these among their causes: 0x1a,0x1b',
      }),
    textsOf: (event) => causeOf(event).senses?.map(({ sId }) => sId) ?? [],
    index: { table: 'event_sense', column: 's_id', type: `'sense'` },
  },
} satisfies Record<string, Filter>;

/** Each event that an index finds is compared with these: for exports, which have a bound, and streams. */
const compared = {
  purpose: {
    query: z
      .string()
      .regex(/^-?\d{1,10}$/, 'expected a puId, such as 1')
      .transform((text) => [String(Number(text))])
      .optional()
      .meta({ description: 'Only events of this purpose, by its puId.', example: '1' }),
    textsOf: (event) => [String(causeOf(event).engine.puId)],
    sql: `${engine} ->> 'puId'`,
  },
  state: {
    query: stateQuery
      .transform(({ puId, stId }) => [`${puId}:${stId}`])
      .optional()
      .meta({ description: 'Only events of this state of a purpose: puId:stId.', example: '1:2' }),
    textsOf: (event) => {
      const { puId, stId } = causeOf(event).engine;
      return [`${puId}:${stId}`];
    },
    sql: `concat(${engine} ->> 'puId', ':', ${engine} ->> 'stId')`,
  },
} satisfies Record<string, Filter>;

const filters: typeof indexed & typeof compared = { ...indexed, ...compared };
type FilterName = keyof typeof filters;

/** The filters of a request; absent or empty: any event. */
export type EventFilters = { [Name in FilterName]?: string[] | undefined };

type Cause = { engine: { puId: number; stId: number }; senses?: { sId: string }[] };

/** `recordEvents` wrote the body of a `RecordedEvent`. */
const causeOf = ({ body }: Filtered) => (body as { cause: Cause }).cause;

/** Members of a query, for the list of a device's events. */
export const indexedFilterMembers = membersOf(indexed);
/** Members of a query, for exports and streams. */
export const eventFilterMembers = membersOf(filters);

function membersOf<Named extends Record<string, Filter>>(
  named: Named,
): { [Name in keyof Named]: Named[Name]['query'] } {
  const members = Object.entries(named).map(([name, { query }]) => [name, query]);
  return Object.fromEntries(members) as { [Name in keyof Named]: Named[Name]['query'] };
}

/** Filters that exclude each other, by name. */
export function findContradictions(asked: EventFilters): Problem[] {
  const problems: Problem[] = [];
  const [type, puId] = [asked.type?.[0], asked.purpose?.[0]];
  if (type === 'device' && asked.senses?.length)
    problems.push({ path: 'senses', message: 'an event of type device has no senses' });
  if (puId !== undefined && asked.state && !asked.state[0]?.startsWith(`${puId}:`))
    problems.push({ path: 'state', message: `is no state of purpose ${puId}` });
  return problems;
}

/** Whether an event matches every filter. */
export function isMatch(asked: EventFilters, event: Filtered): boolean {
  return Object.entries(filters).every(([name, { textsOf }]) => {
    const wanted = asked[name as FilterName];
    return !wanted?.length || textsOf(event).some((text) => wanted.includes(text));
  });
}

/**
 * The index that finds the events, and the values of its column. By its senses if some are named: an event with several
 * of them is found once for each. Otherwise by its type.
 */
export function indexFor({ senses, type }: EventFilters): EventIndex & { tags: string[] } {
  if (senses?.length) return { ...indexed.senses.index, tags: senses };
  return { ...indexed.type.index, tags: type?.length ? type : ['device', 'sense'] };
}

/**
 * What remains to be compared with an event's `body`, as SQL: conditions on the parameters from `$first` on, and their
 * values. The text is the same whatever is asked, so that one prepared statement does.
 */
export function comparisonOf(
  asked: EventFilters,
  first: number,
): { sql: string; values: (string[] | undefined)[] } {
  const conditions = Object.values(compared).map(
    ({ sql }, n) => `($${first + n}::text[] is null or ${sql} = any($${first + n}))`,
  );
  const names = Object.keys(compared) as (keyof typeof compared)[];
  return { sql: conditions.join('\n and '), values: names.map((name) => asked[name]) };
}
