/** What one statement gave, and where the next one goes on: behind `after` in the `place`-th of the slice, from 1. */
export type SliceRead<B, A> = { block: B | null; stop: { place: number; after: A } | null };

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
