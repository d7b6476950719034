/**
 * `list` with one more element; give the result the old one's place. An empty array that is pushed to
 * makes room for seventeen, and of the queues that messages pass through nearly all hold one.
 */
export function append<T>(list: T[], element: T): T[] {
  if (list.length === 0) return [element];
  list.push(element);
  return list;
}
