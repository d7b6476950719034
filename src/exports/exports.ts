import { z } from 'zod';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { RequestInfo } from '../http/request.ts';
import { devicesQuery, labelQuery, timestampQuery } from '../http/schema.ts';
import { csvType, ndjsonType } from '../lib/text.ts';

/** Selects devices by name or by label. */
export const devicesMembers = { devices: devicesQuery, label: labelQuery };

/** Selects a range of time, and the order. */
export const rangeMembers = {
  start: timestampQuery.optional(),
  end: timestampQuery.optional(),
  order: z
    .enum(['asc', 'desc'])
    .default('asc')
    .meta({ description: 'By time within each series: asc, oldest first, or desc.' }),
};

/** For `superRefine`: to read all devices of an account, a request must name a label. */
export function needDevices(
  { devices, label }: { devices?: string[] | undefined; label?: string | undefined },
  context: z.RefinementCtx,
): void {
  if (devices || label !== undefined) return;
  context.addIssue({ code: 'custom', path: ['devices'], message: 'name devices or a label' });
}

type TooMuch = {
  /** The most rows in one answer. */
  most: number;
  /** What the rows are, such as `points`. */
  what: string;
  /** What to request instead. */
  instead: string;
};

/** About how many rows a select has: the planner's estimate, because counting would take as long as reading. */
export async function estimateRows(
  sql: Sql,
  select: { text: string; values: unknown[] },
): Promise<number> {
  const { rows } = await sql.query<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(
    `explain (format json) ${select.text}`,
    select.values,
  );
  return rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
}

/** Throws `invalid-input` if a select has more rows than one answer may, by `estimateRows`. */
export async function refuseTooMuch(
  sql: Sql,
  select: { text: string; values: unknown[] },
  { most, what, instead }: TooMuch,
): Promise<void> {
  const found = await estimateRows(sql, select);
  if (found <= most) return;
  const message = `the request matches about ${found} ${what}, but an answer has at most ${most}: ask for ${instead}`;
  throw new DomainError('invalid-input', 'The request matches more than one answer can hold.', {
    problems: [{ path: 'start', message }],
  });
}

/**
 * Writes `{"<name>":[…],"timestamp":…}` block by block. `textOf`: a block's items, separated by commas. A block
 * without items becomes a line break, because only a write reveals that the client has gone: a client may close
 * its half of the connection once it has sent its request.
 */
export async function* asJsonList<B>(
  name: string,
  blocks: AsyncIterable<B>,
  textOf: (block: B) => string,
  timestamp: number,
): AsyncGenerator<string> {
  yield `{"${name}":[`;
  let separator = '';
  for await (const block of blocks) {
    const text = textOf(block);
    yield text === '' ? '\n' : separator + text;
    if (text !== '') separator = ',';
  }
  yield `],"timestamp":${timestamp}}`;
}

/** Whole lines after a header, if there is one. */
export async function* asLines<B>(
  blocks: AsyncIterable<B>,
  textOf: (block: B) => string,
  header: string = '',
): AsyncGenerator<string> {
  if (header !== '') yield header;
  for await (const block of blocks) yield textOf(block);
}

type ExportType = 'application/json' | typeof csvType | typeof ndjsonType;

/** The type that the Accept header requests; JSON if it names none of these. */
export function typeOf(request: Pick<RequestInfo, 'accepts'>): ExportType {
  return (request.accepts('application/json', csvType, ndjsonType) ||
    'application/json') as ExportType;
}

/** What one statement gave, and where the next one resumes: after `after` in item `place` of the slice, from 1. */
type SliceRead<B, A> = { block: B | null; stop: { place: number; after: A } | null };

/**
 * Reads many items one after the other, in blocks. Each statement covers a slice of at most `size` items. No
 * transaction stays open between two statements, however slowly the client reads.
 */
export async function* walkSlices<T, B, A>(
  all: readonly T[],
  size: number,
  read: (slice: T[], after: A | null) => Promise<SliceRead<B, A>>,
): AsyncGenerator<B> {
  let from = 0;
  let after: A | null = null;
  while (from < all.length) {
    const slice = all.slice(from, from + size);
    const { block, stop }: SliceRead<B, A> = await read(slice, after);
    if (block !== null) yield block;
    from += stop ? stop.place - 1 : slice.length;
    after = stop ? stop.after : null;
  }
}
