import type { Cause, Thresholds } from '../contract/purpose.ts';
import type { Over } from './bins.ts';
import { type Polygon, preparePolygon } from './arithmetic.ts';
import { withoutLongLists } from './told-thresholds.ts';

/**
 * What a cause's thresholds can be met by. `nothing`: there are none, or some ask for a number and
 * others for a position.
 */
type Reads = 'numbers' | 'positions' | 'anything' | 'nothing';

export type CompiledCause = {
  sId: string;
  orderId: number;
  reads: Reads;
  thresholds: Thresholds;
  /** What an event that it completed tells of the thresholds: without long lists, which would be kept with each event. */
  toldThresholds: Thresholds;
  /** Its limits, infinite where it has none, and its lists, null where it has none. */
  above: number;
  below: number;
  lists: Thresholds | null;
  polygon: Polygon | null;
  negate: boolean;
  relative: boolean;
  decimalAcc: number | null;
  /** Neither relative nor rounded: numbers are compared as they come. */
  isPlain: boolean;
  /** Numbers are compared as they come, and with its limits only. */
  hasLimitsOnly: boolean;
  /** How many measurements must agree, of how many. */
  needed: number;
  windowLength: number;
  /** How many of the last m outcomes may disagree and an episode goes on. */
  slack: number;
  /** Its members of time; null where it has none. */
  time: TimeMembers | null;
  /** Whether its window has one outcome, and nothing beside it: what it collects is never changed, but another one. */
  isSingle: boolean;
  /** What judging one measurement takes, beside a cause with two limits, which takes 1; and more where it changes. */
  cost: number;
  costOfChange: number;
};

/** As in the purpose (ms), null where they are absent. */
export type TimeMembers = {
  forMs: number | null;
  noneForMs: number | null;
  maxAgeMs: number | null;
  over: Over | null;
};

/** A cause as it is evaluated. */
export function compileCause(cause: Cause): CompiledCause {
  const { thresholds, threshold } = cause;
  const needed = threshold?.count ?? 1;
  const time = timeOf(threshold);
  // The first measurement that disagrees ends a run, and any ends a silence: there `measurement.count` instructs the
  // device only.
  const isLasting = time?.forMs || time?.noneForMs;
  const windowLength = isLasting ? needed : Math.max(needed, cause.measurement?.count ?? 0);
  const reads = readsOf(thresholds);
  const isPlain = threshold?.relative !== true && threshold?.decimalAcc === undefined;
  const lists = thresholds.isOneOf || thresholds.isNotIn ? thresholds : null;
  return {
    sId: cause.sId,
    orderId: cause.orderId ?? 0,
    reads,
    thresholds,
    toldThresholds: withoutLongLists(thresholds),
    above: thresholds.isGt ?? -Infinity,
    below: thresholds.isLt ?? Infinity,
    lists,
    polygon: thresholds.isInsideGeo ? preparePolygon(thresholds.isInsideGeo) : null,
    negate: threshold?.negate ?? false,
    relative: threshold?.relative ?? false,
    decimalAcc: threshold?.decimalAcc ?? null,
    isPlain,
    hasLimitsOnly: isPlain && lists === null && (reads === 'numbers' || reads === 'anything'),
    needed,
    windowLength,
    slack: windowLength - needed,
    time,
    isSingle: windowLength === 1 && threshold?.relative !== true,
    cost: costOf(cause),
    costOfChange: time ? costOfTime : windowLength === 1 ? 1 : 2,
  };
}

function timeOf(threshold: Cause['threshold']): TimeMembers | null {
  const { forMs = null, noneForMs = null, maxAgeMs = null, over = null } = threshold ?? {};
  const isAsked = forMs !== null || noneForMs !== null || maxAgeMs !== null || over !== null;
  return isAsked ? { forMs, noneForMs, maxAgeMs, over } : null;
}

/** What it takes to copy 12 parts of a window, or the times of 64 outcomes. */
const costOfTime = 16;

/** As measured: a rounding takes 8, each corner of a polygon 3, and 32 numbers of a list. */
function costOf({ thresholds, threshold }: Cause): number {
  const { isOneOf = [], isNotIn = [], isInsideGeo = [] } = thresholds;
  const listed = (isOneOf.length + isNotIn.length) / 32;
  return 1 + (threshold?.decimalAcc === undefined ? 0 : 8) + 3 * isInsideGeo.length + listed;
}

function readsOf({ isGt, isLt, isOneOf, isNotIn, isAny, isInsideGeo }: Thresholds): Reads {
  const members = [isGt, isLt, isOneOf, isNotIn];
  const numbers = members.some((member) => member !== undefined);
  if (isInsideGeo) return numbers ? 'nothing' : 'positions';
  if (numbers) return 'numbers';
  return isAny === true ? 'anything' : 'nothing';
}
