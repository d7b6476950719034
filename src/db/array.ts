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
