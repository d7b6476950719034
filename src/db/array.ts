/**
 * Arrays as PostgreSQL reads them. The driver's own way of writing arrays quotes and escapes every
 * element, which for a batch costs as much as all the rest of it.
 */

/** RS, as in JSON text sequences (RFC 7464): within a JSON text it can only stand escaped. */
const separator = 0x1e;

/**
 * A parameter (`$1`) as SQL for an array of which the planner does not see how many elements it has.
 * Where it does, a short one looks cheaper than what is planned for all, and PostgreSQL plans each query
 * anew: with some joins that takes longer than the query (PREPARE, "plan_cache_mode"). For one statement
 * among others; where it holds for all of a connection's, `keepPlans` of the database says it once.
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
 * A parameter (`$1`) that `jsonSequence` has written, as SQL for an array of text. Each document stands
 * behind the one before as it is, where an array's literal would have to be quoted here and read there.
 */
export function documentsOf(parameter: string): string {
  return `string_to_array(${parameter}::text, chr(${separator}), 'null')`;
}

/** JSON texts one after the other; null is NULL. */
export function jsonSequence(texts: (string | null)[]): string {
  return texts.map((text) => text ?? 'null').join(String.fromCharCode(separator));
}
