import type { CompiledCause, LiveEvent } from './compile-event.ts';
import type { Sense } from './configuration.ts';
import { judge } from './judge.ts';

/** The senses of each device a profile is meant for. */
export type DeviceSenses = Sense[][];

/** Why an event can never fire, each reason a sentence; empty where it can. `devices` where they are known. */
export function whyNever(event: LiveEvent, devices?: DeviceSenses): string[] {
  if (event.causes.length === 0) return ['it has no causes'];
  return event.causes.flatMap((cause) => {
    const reason = whyCauseNever(cause, devices);
    return reason === null ? [] : [reason];
  });
}

function whyCauseNever(cause: CompiledCause, devices?: DeviceSenses): string | null {
  const { sId, reads, thresholds } = cause;
  if (reads === 'nothing') {
    return thresholds.isInsideGeo
      ? `its cause on ${sId} asks for a position and for a number at once`
      : `its cause on ${sId} has no thresholds`;
  }
  if (!canAgree(cause, {})) return `no value meets its cause on ${sId}`;
  if (!devices) return null;
  const senses = devices.flat().filter((sense) => sense.sId === sId);
  if (senses.length === 0) return `no chosen device has the sense ${sId}`;
  if (senses.some((sense) => canAgree(cause, sense))) return null;
  return `no value within the range of the sense ${sId} meets its cause`;
}

// Trying very many values would cost more than the remark is worth.
const maxTried = 200;

/**
 * Whether any value in the range meets the cause. Between two numbers that its thresholds name the
 * outcome is the same everywhere, so one value of each stretch is tried.
 */
function canAgree(cause: CompiledCause, { min, max }: Pick<Sense, 'min' | 'max'>): boolean {
  if (cause.reads === 'positions') return true;
  if (cause.reads === 'anything') return !cause.negate;
  const { isGt, isLt, isOneOf = [], isNotIn = [] } = cause.thresholds;
  const named = [isGt ?? 0, isLt ?? 0, ...isOneOf, ...isNotIn];
  if (named.length > maxTried) return true;
  const widest = cause.relative ? (max ?? Infinity) - (min ?? -Infinity) : Infinity;
  const low = Math.max(-Number.MAX_VALUE, cause.relative ? -widest : (min ?? -Infinity));
  const high = Math.min(Number.MAX_VALUE, cause.relative ? widest : (max ?? Infinity));
  const step = cause.decimalAcc === null ? 0 : 10 ** -cause.decimalAcc;
  const corners = named.flatMap((value) => [value - step, value, value + step]);
  const edges = [low, ...corners.filter((value) => value > low && value < high), high];
  const sorted = edges.toSorted((one, other) => one - other);
  const between = sorted.slice(1).map((value, index) => value / 2 + (sorted[index] ?? value) / 2);
  return [...sorted, ...between].some((value) => judge(cause, value, 0) === true);
}
