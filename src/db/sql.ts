import pg from 'pg';

/** Runs SQL: the pool, or one transaction. Every query function takes it as its first argument. */
export type Sql = {
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    text: string,
    values?: unknown[],
  ): Promise<pg.QueryResult<R>>;
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    config: pg.QueryConfig,
  ): Promise<pg.QueryResult<R>>;
};

// Identities stay far below 2^53, and this program represents times as milliseconds. Both become plain numbers here.
export const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);
// oxlint-disable-next-line no-restricted-globals -- a given time
types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => new Date(text).getTime());

/**
 * The formats in which a session writes values, whatever the server, the database or the role sets (`alter database …
 * set datestyle`). The parsers above read ISO 8601 only, and a number survives the round trip only with all its digits.
 */
export const sessionFormats = {
  timezone: 'UTC',
  datestyle: 'ISO',
  intervalstyle: 'postgres',
  extra_float_digits: 1,
  bytea_output: 'hex',
} as const;

/** Settings as the `options` of a connection, so that the server applies them before the first statement. */
export const optionsOf = (settings: Record<string, string | number>): string =>
  Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ');

/**
 * Arrays in PostgreSQL's text format. The driver quotes and escapes every element, which for a batch costs as much as
 * everything else together.
 */

/** RS, as in JSON text sequences (RFC 7464). Inside JSON text it appears only escaped. */
const separator = 0x1e;

/**
 * A parameter (`$1`) as SQL for an array whose length the planner does not see. If it did, a short array would look
 * cheaper than the generic plan, and PostgreSQL would plan each query again. With some joins that takes longer than the
 * query (PREPARE, "plan_cache_mode"). For single statements; the database's option `keepPlans` does it for a whole
 * connection.
 */
export function unseenArray(parameter: string, type: 'bigint' | 'uuid'): string {
  return `(select ${parameter}::${type}[])::${type}[]`;
}

/** An array of numbers or booleans; null becomes NULL. */
export function plainArray(elements: (number | boolean | null)[]): string {
  return `{${elements.map((element) => element ?? 'NULL').join(',')}}`;
}

/** The same for several columns. */
export function plainArrays(...columns: (number | boolean | null)[][]): string[] {
  return columns.map(plainArray);
}

/**
 * A parameter (`$1`) written by `jsonSequence`, as SQL for an array of text. The documents are concatenated unchanged;
 * an array literal would have to be quoted here and parsed by the server.
 */
export function documentsOf(parameter: string): string {
  return `string_to_array(${parameter}::text, chr(${separator}), 'null')`;
}

/** JSON texts one after the other; null becomes NULL. */
export function jsonSequence(texts: (string | null)[]): string {
  return texts.map((text) => text ?? 'null').join(String.fromCharCode(separator));
}

const { JSON: json } = pg.types.builtins;

/** Returns JSON columns as stored text, for queries that pass the JSON on. Other types are parsed as usual. */
export const jsonAsText: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    oid === json ? (text: string) => text : types.getTypeParser(oid, format),
};

/** A list of our own words, never of input, in SQL: `('pending', 'sent')`. Partial indexes need literals. */
export function textList(words: readonly string[]): string {
  return `(${words.map((word) => `'${word.replaceAll("'", "''")}'`).join(', ')})`;
}

/** The most rows that one transaction deletes, so that nobody waits for it. */
const batchRows = 10_000;

/**
 * Deletes some thousand rows per transaction until none is left or `signal` aborts. `deleteSome` deletes at most
 * `limit` rows. Returns how many rows were deleted.
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
