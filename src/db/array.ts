/**
 * Arrays as PostgreSQL reads them. The driver's own way of writing arrays quotes and escapes every
 * element, which for a batch costs as much as all the rest of it.
 */

/**
 * A parameter (`$1`) as SQL for an array of which the planner does not see how many elements it has.
 * Where it does, a short one looks cheaper than what is planned for all, and PostgreSQL plans each query
 * anew: with some joins that takes longer than the query (PREPARE, "plan_cache_mode").
 */
export function unseenArray(parameter: string, type: 'bigint' | 'uuid'): string {
  return `(select ${parameter}::${type}[])::${type}[]`;
}

/** Of numbers and booleans; null is NULL. */
export function plainArray(elements: (number | boolean | null)[]): string {
  return `{${elements.map((element) => element ?? 'NULL').join(',')}}`;
}

/** Of values as JSON text; null is NULL. A JSON string's escapes are also those of an array's element. */
export function jsonArray(values: (object | null)[]): string {
  const quote = (value: object | null) =>
    value === null ? 'NULL' : JSON.stringify(JSON.stringify(value));
  return `{${values.map(quote).join(',')}}`;
}
