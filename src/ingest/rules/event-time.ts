import type { DeviceIdentity } from '../../contract/uplink.ts';
import { lastOf, type Measurement } from '../../contract/values.ts';
import { type Newest, newestAfter, withLast } from '../../engine/last-seen.ts';
import {
  type Changes,
  type DeviceState,
  type MessageScope,
  nameOfStored,
  type CowArray,
} from './model.ts';
import {
  aheadMs,
  extendRun,
  isSetBack,
  type LateRun,
  ofDevice,
  type Remarked,
  type Watermark,
} from './watermark.ts';

/** What this needs to know of a device. */
export type Clocked = Pick<DeviceState, 'watched' | 'seen' | 'clocks' | 'remarked'> & {
  device: RemarkedDevice;
};
type Message = Pick<MessageScope, 'topic' | 'arrivedTs' | 'stored'> & {
  rows: Pick<Changes, 'clocks' | 'effects'>;
};

type Given = {
  measurement: Measurement;
  isStamped: boolean;
  path: string;
  /** The number of its sense among the watched ones. */
  number: number;
  isAhead: boolean;
};

/**
 * Decides which of a message's measurements are evaluated, and as of when: those that are not stored already and not
 * older than the clock of their sense (`Watermark`). Usually that clock is the newest measurement, and nothing else has
 * to be looked at.
 */
export class EventTimes {
  readonly #device: Clocked;
  readonly #scope: Message;
  #seen: CowArray<Newest>;
  #clocks: ReadonlyMap<string, Watermark> | null;
  #remarked: Remarked | null;

  constructor(device: Clocked, scope: Message) {
    this.#device = device;
    this.#scope = scope;
    this.#seen = device.seen;
    this.#clocks = device.clocks;
    this.#remarked = device.remarked;
  }

  /**
   * The time as of which a measurement is evaluated, ms; null if it is not evaluated. `isStamped`: the service gave it
   * the time of its arrival. `path`: its place in the message.
   */
  take(measurement: Measurement, isStamped: boolean, path: string): number | null {
    const { sId, ts } = measurement;
    const { arrivedTs, stored } = this.#scope;
    const isAhead = ts > arrivedTs + aheadMs;
    if (isAhead && !isStamped) this.#remarkAhead(measurement, path);
    const number = this.#device.watched.get(sId);
    if (number === undefined) return null;
    const isAgain = stored !== null && stored.isAgain(nameOfStored(measurement));
    const last = this.#seen.get(number);
    const isBelow = last !== undefined && ts < last.ts;
    const isPlain = !isAhead && !isBelow && !this.#clocks?.has(sId);
    if (isPlain) return this.#goOn(measurement, number, isAgain);
    return isAgain ? null : this.#weigh({ measurement, isStamped, path, number, isAhead });
  }

  /** The same for a measurement that cannot be decided by the newest one of its sense. */
  #weigh({ measurement, isStamped, path, number, isAhead }: Given): number | null {
    const { sId, ts } = measurement;
    const { arrivedTs } = this.#scope;
    const last = this.#seen.get(number);
    const clock = this.#clocks?.get(sId);
    const isBelow = last !== undefined && ts < last.ts;
    const newest = {
      newestTs: clock?.newestTs ?? last?.ts ?? ts,
      newestVal: clock ? clock.newestVal : lastOf(last),
    };
    const { newestTs } = newest;
    const own = ts >= newestTs ? { newestTs: ts, newestVal: measurement.val } : newest;
    if (isAhead) {
      this.#keep(sId, number, own, null);
      return arrivedTs;
    }
    if (isBelow && isStamped) {
      if (clock?.late) this.#keep(sId, number, newest, null);
      return ts;
    }
    if (isBelow) {
      const late = extendRun(clock?.late ?? null, ts, arrivedTs);
      if (isSetBack(late, arrivedTs))
        return this.#setBack({ measurement, path, number }, newest, late);
      this.#keep(sId, number, newest, late);
      return null;
    }
    const t = this.#goOn(measurement, number, false);
    // It is newer than everything stored, so the history's newest value says everything and the watermark no longer
    // applies.
    if (ts > newestTs) this.#forget(sId);
    else this.#keep(sId, number, own, null);
    return t;
  }

  /** The device's state afterwards; `after` is its state after the evaluation. */
  end<Known extends Clocked>(after: Known): Known {
    const [seen, clocks, remarked] = [this.#seen, this.#clocks, this.#remarked];
    const isSame = seen === after.seen && clocks === after.clocks && remarked === after.remarked;
    return isSame ? after : { ...after, seen, clocks, remarked };
  }

  /** Takes a measurement that is not older than the clock. */
  #goOn(measurement: Measurement, number: number, isAgain: boolean): number | null {
    const last = this.#seen.get(number);
    const newest = newestAfter(last, measurement);
    if (newest) this.#seen = this.#seen.with(number, newest);
    else if (last && !isAgain) this.#seen = this.#seen.with(number, withLast(last, measurement));
    return newest && measurement.ts;
  }

  #setBack(
    { measurement, path, number }: Pick<Given, 'measurement' | 'path' | 'number'>,
    newest: Pick<Watermark, 'newestTs' | 'newestVal'>,
    run: LateRun,
  ): number {
    const { sId, ts, val } = measurement;
    const clockTs = this.#seen.get(number)?.ts ?? newest.newestTs;
    this.#remark('clock-back', path, backMessage(sId, run, clockTs));
    this.#seen = this.#seen.with(number, { ts, vals: [val] });
    this.#keep(sId, number, newest, null);
    return ts;
  }

  #remarkAhead({ sId, ts }: Measurement, path: string): void {
    const message =
      `ts ${ts} of sense ${sId} is ${ts - this.#scope.arrivedTs} ms ahead of the service's ` +
      'clock. The value is stored with this ts and evaluated as of its arrival. Reported once an ' +
      'hour.';
    this.#remark('clock-ahead', `${path}/ts`, message);
  }

  #remark(reason: 'clock-ahead' | 'clock-back', path: string, message: string): void {
    this.#remarked = remark(this.#device, this.#remarked, { reason, message, path }, this.#scope);
  }

  /** Saves the watermark of a clock whose time is the one in `#seen`. */
  #keep(
    sId: string,
    number: number,
    newest: Pick<Watermark, 'newestTs' | 'newestVal'>,
    late: LateRun | null,
  ): void {
    const { deviceId } = this.#device.device;
    const { ts: clockTs = null, vals = [] } = this.#seen.get(number) ?? {};
    const state: Watermark = { ...newest, clockTs, vals, late };
    this.#clocks = new Map(this.#clocks).set(sId, state);
    this.#scope.rows.clocks.set(`${deviceId} ${sId}`, { deviceId, sId, state });
  }

  #forget(sId: string): void {
    const clocks = new Map(this.#clocks);
    clocks.delete(sId);
    this.#clocks = clocks.size > 0 ? clocks : null;
  }
}

function backMessage(sId: string, { total, lastTs }: LateRun, clockTs: number): string {
  return (
    `The last ${total} values of sense ${sId} are older than the newest one, of ts ${clockTs}, ` +
    `but advance like a clock: the clock was set back. Values from ts ${lastTs} on are evaluated ` +
    'again.'
  );
}

/** The device to tell. */
type RemarkedDevice = Pick<DeviceIdentity, 'deviceId' | 'uuid'>;
type Saying = Pick<MessageScope, 'topic' | 'arrivedTs'> & {
  rows: Pick<Changes, 'clocks' | 'effects'>;
};

type Remark = { reason: 'clock-ahead' | 'clock-back'; message: string; path: string };

const remarkEveryMs = 3_600_000;

const memberOf = { 'clock-ahead': 'aheadTs', 'clock-back': 'backTs' } as const;

/** Tells the device about its clock, at most once an hour; nothing is rejected. Returns when it was last told what. */
function remark(
  { device: { deviceId, uuid } }: { device: RemarkedDevice },
  before: Remarked | null,
  { reason, message, path }: Remark,
  { rows, arrivedTs, topic }: Saying,
): Remarked | null {
  const member = memberOf[reason];
  const last = before?.[member] ?? null;
  if (last !== null && arrivedTs < last + remarkEveryMs) return before;
  const payload = { topic, reason, message, path, ts: arrivedTs };
  rows.effects.push({ kind: 'down', uuid, message: { topic: 'errors', payload } });
  const remarked: Remarked = { aheadTs: null, backTs: null, ...before, [member]: arrivedTs };
  rows.clocks.set(`${deviceId} `, { deviceId, sId: ofDevice, state: remarked });
  return remarked;
}
