import type { Sense } from '../contract/configuration.ts';
import type { Thresholds } from '../contract/purpose.ts';
import type { Measurement, Position } from '../contract/values.ts';
import { finite, isInside, roundDecimal } from './arithmetic.ts';
import type { CompiledCause } from './compile.ts';

/**
 * Whether a measured value agrees with a cause; null if the cause does not evaluate such a value. `baseline`: what a
 * `relative` cause measures from.
 */
export function judge(
  cause: CompiledCause,
  val: Measurement['val'],
  baseline: number | undefined,
): boolean | null {
  const { reads } = cause;
  if (typeof val === 'number') {
    if (reads === 'positions' || reads === 'nothing') return null;
    const compared = cause.isPlain ? val : comparedNumber(cause, val, baseline);
    return meets(cause, compared) !== cause.negate;
  }
  if (reads === 'numbers' || reads === 'nothing') return null;
  return liesWithin(cause, val) !== cause.negate;
}

/** The number that thresholds are compared with: `relative` applies first, then `decimalAcc`. */
export function comparedNumber(
  { relative, decimalAcc }: CompiledCause,
  val: number,
  baseline: number | undefined,
): number {
  const difference = relative ? finite(val - (baseline ?? val)) : val;
  const rounded = decimalAcc === null ? difference : roundDecimal(difference, decimalAcc);
  // No negative zero, which would not survive JSON.
  return rounded === 0 ? 0 : rounded;
}

/** Whether a position lies in the cause's polygon; true if it has none. */
export function liesWithin({ polygon }: CompiledCause, position: Position): boolean {
  return polygon === null || isInside(polygon, position);
}

function meets({ above, below, lists }: CompiledCause, compared: number): boolean {
  return compared > above && compared < below && (lists === null || isListed(lists, compared));
}

function isListed({ isOneOf, isNotIn }: Thresholds, compared: number): boolean {
  return (
    (isOneOf === undefined || isOneOf.includes(compared)) &&
    (isNotIn === undefined || !isNotIn.includes(compared))
  );
}

/** Thresholds with more numbers are not checked, because that would take longer than a warning may. */
export const maxTried = 200;

/**
 * Whether any value in the range meets the cause. Between two numbers that its thresholds name, the outcome is the
 * same everywhere, so it tries one value of each stretch.
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

/** The range of what is compared, for values from `min` to `max`. */
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
  if (stat === 'stddev') return within(0, (max - min) / 2);
  // The number of values is unknown: a sum has a lower bound only if no value is below 0; likewise an upper bound.
  if (stat === 'sum') return within(min < 0 ? -Infinity : min, max > 0 ? Infinity : max);
  return within(min, max);
}
