import { AsyncLocalStorage } from 'node:async_hooks';
import type { LiveDevice, LiveValue } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import type { MonotonicClock, MonotonicMs } from '../lib/clock-readings.ts';
import {
  parsePosition,
  readPosition,
  type StreamPosition,
  writePosition,
} from '../streams/position.ts';
import { chunkBytes, writeMessage } from '../streams/server-sent.ts';

/** A committed value. Its text is written once for all streams. */
export class Value {
  readonly deviceId: number;
  readonly sId: string;
  readonly ts: number;
  readonly #uuid: string;
  readonly #value: LiveValue;
  #text: string | undefined;

  constructor({ deviceId, uuid }: Pick<LiveDevice, 'deviceId' | 'uuid'>, value: LiveValue) {
    this.deviceId = deviceId;
    [this.sId, this.ts] = value;
    this.#uuid = uuid;
    this.#value = value;
  }

  /** Identifies a sense within its account. */
  get key(): string {
    return `${this.deviceId} ${this.sId}`;
  }

  /** Its message, without id and end. */
  get text(): string {
    this.#text ??= writeMessage('measurement', JSON.stringify(this.#view()));
    return this.#text;
  }

  #view() {
    const [sId, ts, val, long] = this.#value;
    return {
      deviceAuthUuid: this.#uuid,
      sId,
      val: long === undefined ? val : { lat: val, long },
      ts,
    };
  }
}

/** Writes values as messages. The last message of each chunk still lacks its id and end. */
export function* toBytes(values: readonly Value[]): Generator<Buffer> {
  let text = '';
  for (const [i, value] of values.entries()) {
    text += text === '' ? value.text : `\n${value.text}`;
    if (text.length < chunkBytes && i < values.length - 1) continue;
    yield Buffer.from(text);
    text = '';
  }
}

/** The time in ms up to which a sense was sent. */
export type SentSense = { deviceId: number; sId: string; ts: number };

/**
 * How far a stream of values has come. For each sense, everything was sent up to the newest value that `position`
 * sees; for senses in `sent`, also what came after it.
 *
 * A time for each sense would be too long for an id: 4,000 of them are 40 KB with every message, and a request's
 * headers hold 16 KB. One time for all would skip what a slow device measured earlier and sends later, or repeat
 * what fast ones have sent since. But the database knows which values a snapshot of its transactions sees,
 * whichever process stored them. So the id is that snapshot, taken a few seconds ago (by then a commit must have
 * reached this process), with the newest few senses sent since. If there are more senses, values of those seconds
 * are repeated.
 */
export type LivePosition = { position: StreamPosition; sent: SentSense[] };

/** The most senses that an id lists beside its snapshot. Keeps it below 1 KB. */
export const maxSent = 16;
/** An id omits senses with a longer name; their values of the last seconds are repeated. */
const maxNameLength = 24;

/** Writes the position as a part of the id of a server-sent event. */
export function writeLivePosition({ position, sent }: LivePosition): string {
  const named = sent
    .map(({ deviceId, sId, ts }) => [
      deviceId.toString(36),
      encodeURIComponent(sId),
      ts.toString(36),
    ])
    .filter(([, name = '']) => name.length <= maxNameLength)
    .map((parts) => parts.join(':'));
  const text = writePosition(position);
  return named.length === 0 ? text : `${text}/${named.join(',')}`;
}

/** Null for text that `writeLivePosition` did not write. */
export function parseLivePosition(text: string): LivePosition | null {
  const [before = '', named = ''] = text.split('/', 2);
  const position = parsePosition(before);
  if (!position) return null;
  const sent = named === '' ? [] : named.split(',').map(parseSent);
  if (sent.length > maxSent || !sent.every((one) => one !== null)) return null;
  return { position, sent };
}

function parseSent(text: string): SentSense | null {
  const [, device, name, time] =
    /^([0-9a-z]{1,10}):([^:,/]{0,72}):([0-9a-z]{1,10})$/.exec(text) ?? [];
  if (device === undefined || name === undefined || time === undefined) return null;
  try {
    const sId = decodeURIComponent(name);
    return { deviceId: Number.parseInt(device, 36), sId, ts: Number.parseInt(time, 36) };
  } catch {
    return null;
  }
}

/** What was committed when it was read, between `fromMs` and `toMs`. */
export type ReadPosition = { position: StreamPosition; fromMs: number; toMs: number };

/** The positions of the last seconds, shared by all streams of values in this process. */
export type Positions = {
  /** Reads what is committed now. */
  read(): Promise<ReadPosition>;
  /** The newest position that was read before `beforeMs`. */
  findBefore(beforeMs: number): ReadPosition | undefined;
  /** Reads a position every second. Returns a function that ends it. */
  follow(onError: (error: unknown) => void): () => void;
};

const everyMs = 1_000;

/** `keptMs`: how far back positions are remembered. */
export function createPositions(
  db: Sql,
  monotonicClock: MonotonicClock,
  keptMs: number,
): Positions {
  const kept: ReadPosition[] = [];
  // Positions serve the streams of all accounts, so no account's context may stick to them.
  const asNobody = AsyncLocalStorage.snapshot();

  async function read(): Promise<ReadPosition> {
    const fromMs = monotonicClock();
    const position = await readPosition(db);
    const one = { position, fromMs, toMs: monotonicClock() };
    const newest = kept.at(-1);
    if (!newest || one.fromMs - newest.fromMs >= everyMs / 2) kept.push(one);
    while ((kept[1]?.toMs ?? Infinity) < one.toMs - keptMs) kept.shift();
    return one;
  }
  return {
    read,
    findBefore: (beforeMs) => kept.findLast(({ toMs }) => toMs <= beforeMs),
    follow(onError) {
      const timer = setInterval(() => void asNobody(read).catch(onError), everyMs);
      return () => clearInterval(timer);
    },
  };
}

/** `lastTs`: the time of the value sent last. `waiting`: the value to send once it is due. */
type Sense = { lastTs: number; dueMs: number; waiting: Value | null };

/**
 * Passes one value of each sense per `periodMs`: the first at once, then the newest of each period. It remembers
 * only senses that had a value within the last period.
 */
export class ValueThrottle {
  readonly periodMs: number;
  /** Ordered by due time. */
  readonly #senses = new Map<string, Sense>();

  constructor(periodMs: number) {
    this.periodMs = periodMs;
  }

  /** Whether to send the value now. Otherwise it waits, or a newer one replaces it. */
  isDue(value: Value, monotonicMs: MonotonicMs): boolean {
    const sense = this.#senses.get(value.key);
    if (!sense) {
      this.#sent(value, monotonicMs);
      return true;
    }
    const newestTs = sense.waiting?.ts ?? sense.lastTs;
    if (value.ts >= newestTs) sense.waiting = value;
    return false;
  }

  /** Takes the values that are due, at most `limit`. */
  takeDue(monotonicMs: MonotonicMs, limit: number): Value[] {
    const due: Value[] = [];
    for (const [key, { dueMs, waiting }] of this.#senses) {
      if (dueMs > monotonicMs || due.length >= limit) break;
      this.#senses.delete(key);
      if (!waiting) continue;
      this.#sent(waiting, monotonicMs);
      due.push(waiting);
    }
    return due;
  }

  /** When the next one may be due; Infinity if there is none. */
  get nextMs(): number {
    const [first] = this.#senses.values();
    return first?.dueMs ?? Infinity;
  }

  #sent({ key, ts }: Value, monotonicMs: MonotonicMs): void {
    this.#senses.set(key, { lastTs: ts, dueMs: monotonicMs + this.periodMs, waiting: null });
  }
}
