import { z } from 'zod';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { RequestInfo } from '../http/request.ts';
import { devicesQuery, labelQuery, timestampQuery } from '../http/schema.ts';
import { csvType, ndjsonType } from '../lib/text.ts';

/** Which devices: those named, and those with a label. */
export const devicesMembers = { devices: devicesQuery, label: labelQuery };

/** Which times, and in which order. */
export const rangeMembers = {
  start: timestampQuery.optional(),
  end: timestampQuery.optional(),
  order: z
    .enum(['asc', 'desc'])
    .default('asc')
    .meta({ description: 'By time within each series: asc, oldest first, or desc.' }),
};

/** For `superRefine`: an answer about all devices of an account has to be asked for by a label of theirs. */
export function needDevices(
  { devices, label }: { devices?: string[] | undefined; label?: string | undefined },
  context: z.RefinementCtx,
): void {
  if (devices || label !== undefined) return;
  context.addIssue({ code: 'custom', path: ['devices'], message: 'name devices or a label' });
}

type TooMuch = {
  /** Rows that one answer has at most. */
  most: number;
  /** What the rows are: `points`. */
  what: string;
  /** What to ask for instead. */
  instead: string;
};

/**
 * Throws `invalid-input` where a select has more rows than one answer, by the planner's estimate: counting them would
 * take as long as reading them.
 */
export async function refuseTooMuch(
  sql: Sql,
  select: { text: string; values: unknown[] },
  { most, what, instead }: TooMuch,
): Promise<void> {
  const { rows } = await sql.query<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(
    `explain (format json) ${select.text}`,
    select.values,
  );
  const found = rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
  if (found <= most) return;
  const message = `the request matches about ${found} ${what}, but an answer has at most ${most}: ask for ${instead}`;
  throw new DomainError('invalid-input', 'The request matches more than one answer can hold.', {
    problems: [{ path: 'start', message }],
  });
}

/**
 * `{"<name>":[…],"timestamp":…}`, written as it comes. `textOf`: items of a block with commas between. A block without
 * items becomes a line break: only a write tells that the client has gone, because a client may close its half of the
 * connection once it has sent its request.
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

/** Whole lines behind a header, if there is one. */
export async function* asLines<B>(
  blocks: AsyncIterable<B>,
  textOf: (block: B) => string,
  header: string = '',
): AsyncGenerator<string> {
  if (header !== '') yield header;
  for await (const block of blocks) yield textOf(block);
}

type ExportType = 'application/json' | typeof csvType | typeof ndjsonType;

/** What the Accept header asks for; JSON where it names none of these. */
export function typeOf(request: Pick<RequestInfo, 'accepts'>): ExportType {
  return (request.accepts('application/json', csvType, ndjsonType) ||
    'application/json') as ExportType;
}

/** What one statement gave, and where the next one goes on: behind `after` in the `place`-th of the slice, from 1. */
type SliceRead<B, A> = { block: B | null; stop: { place: number; after: A } | null };

/**
 * Reads what belongs to many things, one thing behind the other, in blocks: a statement looks at a slice of `size`
 * things at most. No transaction is open between two statements, however slowly they are read.
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
