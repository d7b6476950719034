import pg from 'pg';

/** Whatever runs SQL: the pool, or one transaction. Every query function takes it first. */
export type Sql = {
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    text: string,
    values?: unknown[],
  ): Promise<pg.QueryResult<R>>;
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    config: pg.QueryConfig,
  ): Promise<pg.QueryResult<R>>;
};

// Identities stay far below 2^53, and a point in time is a number of milliseconds everywhere in this
// program: both are plain numbers from here on.
export const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);
// oxlint-disable-next-line no-restricted-globals -- a given time
types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => new Date(text).getTime());

/**
 * In which form a session writes its values, whatever the server, the database or the role is set to (`alter database
 * … set datestyle`): the parsers above read ISO 8601 alone, and a number is read back as it was stored only with all
 * of its digits.
 */
export const sessionFormats = {
  timezone: 'UTC',
  datestyle: 'ISO',
  intervalstyle: 'postgres',
  extra_float_digits: 1,
  bytea_output: 'hex',
} as const;

/** Settings as the `options` of a connection: the server has them before the first statement. */
export const optionsOf = (settings: Record<string, string | number>): string =>
  Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ');

/**
 * Arrays in PostgreSQL's text format. The driver quotes and escapes every element, which for a batch costs
 * as much as everything else together.
 */

/** RS, as in JSON text sequences (RFC 7464): within a JSON text it can only stand escaped. */
const separator = 0x1e;

/**
 * A parameter (`$1`) as SQL for an array whose length the planner does not see. If it did, a short array
 * would look cheaper than the generic plan, and PostgreSQL would plan each query again: with some joins that
 * takes longer than the query (PREPARE, "plan_cache_mode"). For single statements; the option `keepPlans`
 * of the database does it for all of a connection.
 */
export function unseenArray(parameter: string, type: 'bigint' | 'uuid'): string {
  return `(select ${parameter}::${type}[])::${type}[]`;
}

/** Of numbers and booleans; null is NULL. */
export function plainArray(elements: (number | boolean | null)[]): string {
  return `{${elements.map((element) => element ?? 'NULL').join(',')}}`;
}

/** The same of each column. */
export function plainArrays(...columns: (number | boolean | null)[][]): string[] {
  return columns.map(plainArray);
}

/**
 * A parameter (`$1`) that `jsonSequence` has written, as SQL for an array of text. The documents follow each
 * other unchanged; an array literal would have to be quoted here and parsed by the server.
 */
export function documentsOf(parameter: string): string {
  return `string_to_array(${parameter}::text, chr(${separator}), 'null')`;
}

/** JSON texts one after the other; null is NULL. */
export function jsonSequence(texts: (string | null)[]): string {
  return texts.map((text) => text ?? 'null').join(String.fromCharCode(separator));
}

const { JSON: json } = pg.types.builtins;

/** For a query whose JSON is passed on: it comes as the text that is stored, everything else as usual. */
export const jsonAsText: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    oid === json ? (text: string) => text : types.getTypeParser(oid, format),
};

/** Words of ours, never anybody's input, as a list in SQL: `('pending', 'sent')`; partial indexes need literals. */
export function textList(words: readonly string[]): string {
  return `(${words.map((word) => `'${word.replaceAll("'", "''")}'`).join(', ')})`;
}

/** Rows that one transaction deletes at most, so that nobody waits for it. */
const batchRows = 10_000;

/**
 * Deletes some thousand rows a transaction until none is left, or it is told to stop: `deleteSome` deletes at most
 * `limit` of them. Gives how many went.
 */
export async function deleteInBatches(
  deleteSome: (limit: number) => Promise<{ rowCount: number | null }>,
  { signal, limit = batchRows }: { signal?: AbortSignal | undefined; limit?: number },
): Promise<number> {
  let total = 0;
  while (signal?.aborted !== true) {
    const { rowCount } = await deleteSome(limit);
    total += rowCount ?? 0;
    if ((rowCount ?? 0) < limit) break;
  }
  return total;
}
