/** `list` cut into slices of `size` elements; the last one has what is left. None for an empty list. */
export function slicesOf<T>(list: readonly T[], size: number): T[][] {
  const count = Math.ceil(list.length / size);
  return Array.from({ length: count }, (_, n) => list.slice(n * size, (n + 1) * size));
}
