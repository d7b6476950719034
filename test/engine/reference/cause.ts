import { roundDecimal } from '../../../src/engine/decimal.ts';
import type { CauseDetail, CauseSense } from '../../../src/contract/event.ts';
import { isInside, preparePolygon } from '../../../src/engine/geo.ts';
import type { Measurement } from '../../../src/contract/measurement.ts';
import type { Cause } from '../../../src/contract/purpose.ts';

type Judgement = { agrees: boolean; compared?: number; inside?: boolean };

/** Every outcome since the window was emptied last; a measurement that did not agree is null. */
export type Collected = {
  outcomes: ((Judgement & Measurement) | null)[];
  baseline?: number;
};

/** Null where the cause does not evaluate such a value. */
export function judge(
  { thresholds, threshold }: Cause,
  val: Measurement['val'],
  baseline: number | undefined,
): Judgement | null {
  const { isGt, isLt, isOneOf, isNotIn, isAny, isInsideGeo } = thresholds;
  const negate = threshold?.negate ?? false;
  const asksNumber = [isGt, isLt, isOneOf, isNotIn].some((member) => member !== undefined);
  if (isInsideGeo ? asksNumber : !asksNumber && isAny !== true) return null;
  if (typeof val !== 'number') {
    if (asksNumber) return null;
    const inside = isInsideGeo ? isInside(preparePolygon(isInsideGeo), val) : true;
    return { agrees: inside !== negate, inside };
  }
  if (isInsideGeo) return null;
  const limit = Number.MAX_VALUE;
  const difference = Math.min(limit, Math.max(-limit, val - (baseline ?? val)));
  const number = threshold?.relative ? difference : val;
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

function needed({ threshold, measurement }: Cause): { n: number; m: number } {
  const n = threshold?.count ?? 1;
  return { n, m: Math.max(n, measurement?.count ?? 0) };
}

/** The last outcomes that are looked at. */
export function windowOf(cause: Cause, collected: Collected): Collected['outcomes'] {
  return collected.outcomes.slice(-needed(cause).m);
}

/** Whether enough of the last outcomes agreed. */
export function isInFull(cause: Cause, collected: Collected | undefined): boolean {
  const agreed = windowOf(cause, collected ?? { outcomes: [] }).filter((it) => it !== null);
  return agreed.length >= needed(cause).n;
}

/** What is told of a cause that holds: the newest measurement that agreed, and how it came to hold. */
export function detailsOf(
  cause: Cause,
  collected: Collected | undefined,
): { sense: CauseSense; why: CauseDetail }[] {
  const window = windowOf(cause, collected ?? { outcomes: [] });
  const newest = window.findLast((it) => it !== null);
  if (!newest) return [];
  const { sId, orderId = 0, thresholds, threshold } = cause;
  const told = Object.entries(thresholds).filter(
    ([, value]) => !Array.isArray(value) || value.length <= 16,
  );
  const why: CauseDetail = {
    sId,
    orderId,
    thresholds: Object.fromEntries(told),
    negate: threshold?.negate ?? false,
    matched: window.filter((it) => it !== null).length,
    of: window.length,
    needed: needed(cause).n,
  };
  if (newest.compared !== undefined) why.compared = newest.compared;
  return [{ sense: senseOf(sId, newest), why }];
}

/** A position is told as 1 inside and 0 outside; zero has no sign. */
export function senseOf(sId: string, { val, ts, inside }: Judgement & Measurement): CauseSense {
  if (typeof val === 'number') return { sId, val: val + 0, ts };
  return { sId, val: inside ? 1 : 0, ts, lat: val.lat + 0, long: val.long + 0 };
}
