import type { CompiledCause } from './compile.ts';
import { finite, isInside, roundDecimal } from './arithmetic.ts';
import type { Measurement, Position } from '../contract/values.ts';
import type { Thresholds } from '../contract/purpose.ts';

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
