import type { CompiledCause } from './compile-cause.ts';
import type { Sense } from '../contract/configuration.ts';
import { judge } from './thresholds.ts';

/** Thresholds that name more numbers are not tried: that would take longer than a warning may. */
export const maxTried = 200;

/**
 * Whether any value in the range meets the cause. Between two numbers that its thresholds name the
 * outcome is the same everywhere, so one value of each stretch is tried.
 */
export function canAgree(cause: CompiledCause, { min, max }: Pick<Sense, 'min' | 'max'>): boolean {
  if (cause.reads === 'positions') return true;
  if (cause.reads === 'anything') return !cause.negate;
  const { isGt, isLt, isOneOf = [], isNotIn = [] } = cause.thresholds;
  const named = [isGt ?? 0, isLt ?? 0, ...isOneOf, ...isNotIn];
  if (named.length > maxTried) return true;
  const [low, high] = comparedWithin(cause, min ?? -Infinity, max ?? Infinity);
  const step = cause.decimalAcc === null ? 0 : 10 ** -cause.decimalAcc;
  const corners = named.flatMap((value) => [value - step, value, value + step]);
  const edges = [low, ...corners.filter((value) => value > low && value < high), high];
  const sorted = edges.toSorted((one, other) => one - other);
  const between = sorted.slice(1).map((value, index) => value / 2 + (sorted[index] ?? value) / 2);
  return [...sorted, ...between].some((value) => judge(cause, value, 0) === true);
}

/** Between which numbers lies what is compared, of values from `min` to `max`. */
function comparedWithin(
  { relative, time }: CompiledCause,
  min: number,
  max: number,
): [low: number, high: number] {
  const stat = time?.over?.stat;
  const within = (low: number, high: number): [number, number] => [
    Math.max(-Number.MAX_VALUE, low),
    Math.min(Number.MAX_VALUE, high),
  ];
  if (relative || stat === 'delta') return within(min - max, max - min);
  // Of any number of values: only whether all of them have one sign is known.
  if (stat === 'sum') return within(min < 0 ? -Infinity : min, max > 0 ? Infinity : max);
  return within(min, max);
}
