import type { Subscriber } from '../streams/subscriber.ts';
import type { Reach } from '../streams/reach.ts';
import type { StreamPiece } from '../streams/server-sent.ts';
import {
  maxSent,
  type Positions,
  type ReadPosition,
  type SentSense,
  toBytes,
  type Value,
  ValueThrottle,
  writeLivePosition,
} from './value.ts';
import type { MonotonicMs } from '../lib/clock-readings.ts';

/** Which values a stream carries. */
export type LiveFilter = {
  reach: Reach;
  /** Absent: all senses. */
  senses?: readonly string[] | undefined;
  /** At most this many values of a sense per second. Absent: all. */
  maxHz?: number | undefined;
};

/** The longest that a commit takes to reach this process, through Redis too. */
export const underWayMs = 2_000;

/** Streams with the same filter. Their values are chosen and written once for all of them. */
export class Group {
  readonly key: string;
  readonly subscribers = new Set<Subscriber<string>>();
  readonly throttle: ValueThrottle | null;
  readonly #filter: LiveFilter;
  readonly #senses: ReadonlySet<string> | null;
  readonly #positions: Positions;
  /** The position when the first stream joined. */
  readonly #first: ReadPosition;
  /** The last value sent of each sense, oldest first. */
  readonly #sent = new Map<string, SentSense & { sentMs: number }>();

  constructor(key: string, filter: LiveFilter, positions: Positions, first: ReadPosition) {
    const { senses, maxHz } = filter;
    this.key = key;
    this.#filter = filter;
    this.#senses = senses ? new Set(senses) : null;
    this.throttle = maxHz === undefined ? null : new ValueThrottle(1_000 / maxHz);
    this.#positions = positions;
    this.#first = first;
  }

  /** The values to send now. */
  choose(values: readonly Value[], monotonicMs: MonotonicMs): Value[] {
    const { reach } = this.#filter;
    return values.filter(
      (value) =>
        reach.has(value.deviceId) &&
        (this.#senses?.has(value.sId) ?? true) &&
        (this.throttle?.isDue(value, monotonicMs) ?? true),
    );
  }

  /** Writes values as pieces of a stream. `heardMs`: everything heard before then has been handled. */
  *write(
    values: readonly Value[],
    heardMs: number,
    monotonicMs: MonotonicMs,
  ): Generator<StreamPiece<string>> {
    for (const value of values) this.#note(value, monotonicMs);
    for (const bytes of toBytes(values)) yield { bytes, position: this.position(heardMs) };
  }

  /** The position of a reader that has read everything queued for it. */
  position(heardMs: number): string {
    const beforeMs = heardMs - underWayMs - (this.throttle?.periodMs ?? 0);
    const { position, fromMs } = this.#positions.findBefore(beforeMs) ?? this.#first;
    const sent: SentSense[] = [];
    for (const { sentMs, ...sense } of this.#sent.values()) if (sentMs >= fromMs) sent.push(sense);
    return writeLivePosition({ position, sent });
  }

  #note({ key, deviceId, sId, ts }: Value, sentMs: number): void {
    const newestTs = Math.max(ts, this.#sent.get(key)?.ts ?? 0);
    this.#sent.delete(key);
    this.#sent.set(key, { deviceId, sId, ts: newestTs, sentMs });
    if (this.#sent.size <= maxSent) return;
    const [oldest = ''] = this.#sent.keys();
    this.#sent.delete(oldest);
  }
}
