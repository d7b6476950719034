const maxDifferent = 2;
/** Longer ones are no misspelt names. */
const maxLength = 64;

/**
 * The name that was meant: the one of these with the fewest different letters, at most two of them, and
 * fewer than the name has. Case, `_` and `-` make no difference. Null where none is that near.
 */
export function nearestName(name: string, names: Iterable<string>): string | null {
  if (name.length > maxLength) return null;
  const plain = plainly(name);
  let nearest: string | null = null;
  let fewest = Math.min(maxDifferent, plain.length - 1) + 1;
  for (const candidate of names) {
    const different = countDifferent(plain, plainly(candidate));
    if (different >= fewest || different >= candidate.length) continue;
    nearest = candidate;
    fewest = different;
  }
  return nearest;
}

const plainly = (name: string) => name.toLowerCase().replaceAll(/[_-]/g, '');

/** Levenshtein's distance: letters added, left out or replaced; two that changed places count as one. */
function countDifferent(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > maxDifferent) return Infinity;
  let [before, last]: number[][] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row[j] = Math.min(
        (last?.[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last?.[j - 1] ?? 0) + (isSame ? 0 : 1),
        i > 1 && j > 1 && isSwapped ? (before?.[j - 2] ?? 0) + 1 : Infinity,
      );
    }
    [before, last] = [last, row];
  }
  return last?.[other.length] ?? Infinity;
}
