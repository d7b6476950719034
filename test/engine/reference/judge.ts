import { isInside, preparePolygon, roundDecimal } from '../../../src/engine/arithmetic.ts';
import type { Measurement } from '../../../src/contract/values.ts';
import type { Cause } from '../../../src/contract/purpose.ts';
import { finite, statisticOf } from './bins.ts';
import { sinceReentry, type Judgement, type Log } from './log.ts';

/** `none`: the cause does not evaluate such a value. `uncompared`: `over` has not seen enough time. */
export type Verdict = Judgement | 'none' | 'uncompared';

/** A cause's verdict on a value that it takes at `t`, after everything in the log. */
export function judge(
  log: Log,
  { cause, index }: { cause: Cause; index: number },
  val: Measurement['val'],
  t: number,
): Verdict {
  const { thresholds, threshold } = cause;
  if (threshold?.noneForMs !== undefined) return { agrees: false };
  const { isGt, isLt, isOneOf, isNotIn, isAny, isInsideGeo } = thresholds;
  const asksNumber = [isGt, isLt, isOneOf, isNotIn].some((member) => member !== undefined);
  if (isInsideGeo ? asksNumber : !asksNumber && isAny !== true) return 'none';
  const negate = threshold?.negate ?? false;
  if (typeof val !== 'number') {
    if (asksNumber || threshold?.over) return 'none';
    const inside = isInsideGeo ? isInside(preparePolygon(isInsideGeo), val) : true;
    return { agrees: inside !== negate, inside };
  }
  if (isInsideGeo) return 'none';
  const number = numberOf(log, { cause, index }, val, t);
  if (number === null) return 'uncompared';
  const { decimalAcc } = threshold ?? {};
  const rounded = decimalAcc === undefined ? number : roundDecimal(number, decimalAcc);
  const compared = rounded === 0 ? 0 : rounded;
  const agrees =
    (isGt === undefined || compared > isGt) &&
    (isLt === undefined || compared < isLt) &&
    (isOneOf === undefined || isOneOf.some((it) => it === compared)) &&
    (isNotIn === undefined || isNotIn.every((it) => it !== compared));
  return { agrees: agrees !== negate, compared };
}

/** The statistic, the difference or the value itself; null while `over` compares nothing. */
function numberOf(
  log: Log,
  { cause, index }: { cause: Cause; index: number },
  val: number,
  t: number,
): number | null {
  const { over, relative } = cause.threshold ?? {};
  if (over) return statisticOf(log, index, over, { t, val });
  if (!relative) return val;
  return finite(val - (baselineOf(log, index) ?? val));
}

/** The first number that a cause evaluated after its entry or re-entry. */
export function baselineOf(log: Log, index: number): number | undefined {
  return sinceReentry(log)
    .filter((entry) => entry.kind === 'taken' && entry.cause === index)
    .map((entry) => entry.kind === 'taken' && entry.measurement.val)
    .find((val) => typeof val === 'number');
}
