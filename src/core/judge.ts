import type { CompiledCause } from './compile-event.ts';
import { roundDecimal } from './decimal.ts';
import { isInside } from './geo.ts';
import type { Measurement, Position } from './measurement.ts';
import type { Thresholds } from './purpose.ts';

/** What one measurement is to one cause; `compared` is absent for a position. */
export type Judgement = { agrees: boolean; compared?: number; inside?: boolean };

/**
 * Judges a measured value; null where the cause does not evaluate such a value. `baseline` is what a
 * `relative` cause measures from.
 */
export function judge(
  cause: CompiledCause,
  val: Measurement['val'],
  baseline: number | undefined,
): Judgement | null {
  if (cause.reads === 'nothing') return null;
  if (typeof val === 'number') {
    if (cause.reads === 'positions') return null;
    const compared = comparedNumber(cause, val, baseline);
    return { agrees: meets(cause.thresholds, compared) !== cause.negate, compared };
  }
  if (cause.reads === 'numbers') return null;
  const inside = liesWithin(cause, val);
  return { agrees: inside !== cause.negate, inside };
}

/** The number that thresholds are compared with: after `relative`, then `decimalAcc`. */
function comparedNumber(
  { relative, decimalAcc }: CompiledCause,
  val: number,
  baseline: number | undefined,
): number {
  const difference = relative ? finite(val - (baseline ?? val)) : val;
  const rounded = decimalAcc === null ? difference : roundDecimal(difference, decimalAcc);
  // No negative zero: it would not survive JSON.
  return rounded === 0 ? 0 : rounded;
}

/** The difference of two very large numbers is beyond what JSON can hold. */
function finite(difference: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, difference));
}

function meets({ isGt, isLt, isOneOf, isNotIn }: Thresholds, compared: number): boolean {
  return (
    (isGt === undefined || compared > isGt) &&
    (isLt === undefined || compared < isLt) &&
    (isOneOf === undefined || isOneOf.includes(compared)) &&
    (isNotIn === undefined || !isNotIn.includes(compared))
  );
}

function liesWithin({ polygon }: CompiledCause, position: Position): boolean {
  return polygon === null || isInside(polygon, position);
}
