import type { CompiledCause, LiveEvent } from './compile-event.ts';
import type { Sense } from '../contract/configuration.ts';
import type { WarningCode } from '../contract/warning.ts';
import { judge } from './thresholds.ts';

/** The senses of each device a profile is meant for. */
export type DeviceSenses = Sense[][];

/**
 * The same by sense: the range of each of them, and the longest `minInterval` of those that have one, in ms.
 * `tries`: how many ranges will be looked at yet.
 */
export type KnownSenses = {
  ranges: ReadonlyMap<string, Sense[]>;
  slowest: ReadonlyMap<string, number>;
  tries: number;
};

/** As many ranges are looked at for one profile: beyond it nothing is said to be out of range. */
const maxTries = 20_000;

export function knownSenses(devices: DeviceSenses): KnownSenses {
  const ranges = new Map<string, Sense[]>();
  const slowest = new Map<string, number>();
  for (const senses of devices) {
    for (const sense of senses) {
      const known = ranges.get(sense.sId);
      if (known) known.push(sense);
      else ranges.set(sense.sId, [sense]);
      const { sId, minInterval = 0 } = sense;
      if (minInterval > (slowest.get(sId) ?? 0)) slowest.set(sId, minInterval);
    }
  }
  return { ranges, slowest, tries: maxTries };
}

/** Why an event never fires. */
export type Never = { code: WarningCode; what: string };

/** Why a cause is never met, or null where it can be. `size`: what it took to find out, in microseconds or so. */
export type JudgedCause = { size: number; reason: Never | null };

/** What is to be said of each cause of an event, one after the other. `senses` where they are known. */
export function* whyUnfireable(event: LiveEvent, senses?: KnownSenses): Generator<JudgedCause> {
  if (event.causes.length === 0)
    yield { size: 1, reason: { code: 'event-without-causes', what: 'it has no causes' } };
  for (const cause of event.causes) {
    const before = senses?.tries ?? 0;
    const reason = whyCauseNever(cause, senses);
    const tried = 1 + before - (senses?.tries ?? 0);
    yield { size: tried * sizeOf(cause), reason };
  }
}

/** Of one range: as many values are tried as thresholds name, and each is looked for among these. */
function sizeOf({ thresholds: { isOneOf = [], isNotIn = [] } }: CompiledCause): number {
  const named = isOneOf.length + isNotIn.length;
  return named > maxTried ? 1 : 1 + named ** 2 / 100;
}

function whyCauseNever(cause: CompiledCause, known?: KnownSenses): Never | null {
  const { sId, reads, thresholds } = cause;
  // A sense that no device has is silent: such an event fires (`warnOfTime`).
  if (typeof cause.time?.noneForMs === 'number') return null;
  if (reads === 'nothing') {
    return thresholds.isInsideGeo
      ? {
          code: 'position-and-number',
          what: `its cause on ${sId} asks for a position and for a number at once`,
        }
      : { code: 'cause-without-thresholds', what: `its cause on ${sId} has no thresholds` };
  }
  if (!canAgree(cause, {}))
    return { code: 'no-value-fits', what: `no value meets its cause on ${sId}` };
  if (!known) return null;
  const senses = known.ranges.get(sId);
  if (!senses)
    return { code: 'no-device-has-sense', what: `no chosen device has the sense ${sId}` };
  if (canAgreeWithin(cause, senses, known)) return null;
  const what = `no value within the range of the sense ${sId} meets its cause`;
  return { code: 'out-of-range', what };
}

function canAgreeWithin(cause: CompiledCause, senses: Sense[], known: KnownSenses): boolean {
  for (const sense of senses) {
    if (known.tries <= 0) return true;
    known.tries -= 1;
    if (canAgree(cause, sense)) return true;
  }
  return false;
}

// Trying very many values would cost more than the warning is worth.
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
