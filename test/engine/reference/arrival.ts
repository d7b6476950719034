import type { Measurement } from '../../../src/contract/values.ts';
import type { Moment } from '../../../src/engine/compile.ts';

/** As a device sends it. */
export type Sent = Omit<Measurement, 'ts'> & { ts?: number };

/** A measurement that is evaluated, and its times. */
export type Arrived = { measurement: Measurement; moment: Moment };

type Sense = {
  clock: number;
  /** How many values of the time at which its clock stands were evaluated. */
  valuesNow: number;
  stored: Measurement[];
  /** The last time that was assigned on arrival. */
  stampedTs: number;
  /** Consecutive late ones, each with a later time than the one before. */
  late: { ts: number; arrivedTs: number }[];
};

const aheadMs = 10_000;
const longMs = 15 * 60_000;

/** Decides which measurements of a device are evaluated, in which order, and at which times. */
export class ReferenceArrival {
  readonly #senses = new Map<string, Sense>();

  /** The measurements of one message that are evaluated. */
  receive(sent: readonly Sent[], arrivedTs: number): Arrived[] {
    return sent
      .map(({ sId, val, ts }) => {
        const stamped = ts ?? Math.max(arrivedTs, this.#of(sId).stampedTs + 1);
        if (ts === undefined) this.#of(sId).stampedTs = stamped;
        return { measurement: { sId, val, ts: stamped }, isStamped: ts === undefined };
      })
      .toSorted((one, other) => one.measurement.ts - other.measurement.ts)
      .filter(({ measurement, isStamped }) => this.#isTaken(measurement, isStamped, arrivedTs))
      .map(({ measurement }) => {
        const t = measurement.ts > arrivedTs + aheadMs ? arrivedTs : measurement.ts;
        return { measurement, moment: { t, arrivedTs } };
      });
  }

  /** The newest stored value of a sense. */
  newestOf(sId: string): Measurement | undefined {
    return this.#of(sId)
      .stored.toSorted((one, other) => one.ts - other.ts)
      .at(-1);
  }

  /** Stores a measurement. Returns whether it is evaluated. */
  #isTaken(measurement: Measurement, isStamped: boolean, arrivedTs: number): boolean {
    const sense = this.#of(measurement.sId);
    const { ts } = measurement;
    if (sense.stored.some((other) => isSame(other, measurement))) return false;
    sense.stored.push(measurement);
    const isAhead = ts > arrivedTs + aheadMs;
    const isLate = !isAhead && !isStamped && ts < sense.clock;
    if (isLate && !this.#wasSetBack(sense, ts, arrivedTs)) return false;
    sense.late = [];
    if (isAhead || (ts < sense.clock && !isLate)) return true;
    // Up to 16 values are evaluated of the millisecond at which the sense's clock stands.
    sense.valuesNow = ts === sense.clock ? sense.valuesNow + 1 : 1;
    sense.clock = ts;
    return sense.valuesNow <= 16;
  }

  /**
   * Whether a clock was set back: for a quarter of an hour only late measurements came, and they advanced as time
   * did. If they did not, the count begins anew with the newest.
   */
  #wasSetBack(sense: Sense, ts: number, arrivedTs: number): boolean {
    const last = sense.late.at(-1);
    if (last && ts <= last.ts) sense.late = [];
    sense.late.push({ ts, arrivedTs });
    const [first] = sense.late;
    const passed = arrivedTs - (first?.arrivedTs ?? arrivedTs);
    const went = ts - (first?.ts ?? ts);
    if (passed < longMs) return false;
    if (went >= passed / 2 && went <= passed * 2) return sense.late.length >= 3;
    sense.late = [{ ts, arrivedTs }];
    return false;
  }

  #of(sId: string): Sense {
    const known = this.#senses.get(sId);
    if (known) return known;
    const sense: Sense = {
      clock: -Infinity,
      valuesNow: 0,
      stored: [],
      stampedTs: -Infinity,
      late: [],
    };
    this.#senses.set(sId, sense);
    return sense;
  }
}

function isSame(one: Measurement, other: Measurement): boolean {
  if (one.ts !== other.ts) return false;
  if (typeof one.val === 'number' || typeof other.val === 'number') return one.val === other.val;
  return one.val.lat === other.val.lat && one.val.long === other.val.long;
}
