import type { Cause, Purpose, PurposeEvent } from '../../../src/contract/purpose.ts';
import type { Tells } from '../../../src/engine/compile.ts';
import { speaksOfTime } from './log.ts';

/** Whom a firing of an event concerns. */
export function tellsOf(
  purpose: Purpose,
  stId: number,
  { actions, causes, anyOf }: PurposeEvent,
): Tells {
  const sends = actions.cloud?.sendPush === true || (actions.sms?.phoneNumber ?? []).length > 0;
  if (actions.alarm === true) return sends ? 'alarm' : 'silent-alarm';
  if (!sends) return 'nobody';
  if (actions.alarm === false) return 'notice';
  const { gotoPuId = purpose.puId, gotoStId } = actions.engine ?? {};
  const moves = actions.engine?.gotoPuId !== undefined || gotoStId !== undefined;
  const goesBack =
    moves && gotoPuId === purpose.puId && (gotoStId ?? purpose.initStId) === purpose.initStId;
  const isBack = stId !== purpose.initStId && goesBack;
  const isNeverOver = (anyOf ?? [causes]).some((group) => group.every(isAnything));
  return isBack || isNeverOver ? 'notice' : 'alarm';
}

/** `isAny` alone, without negation or time members, which never disagrees. */
function isAnything(cause: Cause): boolean {
  const { isAny, ...others } = cause.thresholds;
  const isOnly = Object.values(others).every((member) => member === undefined);
  return isAny === true && isOnly && !cause.threshold?.negate && !speaksOfTime([cause]);
}
