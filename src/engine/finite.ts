/** The nearest number that JSON can hold: it has no infinity. */
export function finite(number: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, number));
}
