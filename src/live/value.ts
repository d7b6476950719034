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

/** A value that was committed; as text it is written once for all streams that are sent it. */
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

  /** Tells the senses of an account apart. */
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

/** As messages, of which the last has no id and no end yet. */
export function* toBytes(values: readonly Value[]): Generator<Buffer> {
  let text = '';
  for (const [i, value] of values.entries()) {
    text += text === '' ? value.text : `\n${value.text}`;
    if (text.length < chunkBytes && i < values.length - 1) continue;
    yield Buffer.from(text);
    text = '';
  }
}

/** Time in ms up to which a sense was sent. */
export type SentSense = { deviceId: number; sId: string; ts: number };

/**
 * How far a stream of values has come. Of each sense everything was sent up to the newest value that
 * `position` sees; of those in `sent` also what came after it.
 *
 * A time for each sense would not do as an id: 4,000 of them are 40 KB with every message, and a request's
 * headers hold 16 KB. One time for all would not do either: it leaves out what a slow device sends of before
 * it, or repeats what quick ones have sent since. But the database knows which values a snapshot of
 * its transactions sees, whichever process sent them; so the id is that snapshot, taken a few seconds
 * ago (a commit must have reached this process by then), and the newest few senses sent since. With more
 * of them than that, the values of those seconds come again.
 */
export type LivePosition = { position: StreamPosition; sent: SentSense[] };

/** Of how many senses an id says that they were sent more than its snapshot sees: it stays below 1 KB. */
export const maxSent = 16;
/** A longer name is left out: its values of the last seconds come again. */
const maxNameLength = 24;

/** As a part of the id of a server-sent event. */
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

/** Null for what `writeLivePosition` did not write. */
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

/** What was committed when it was read: after `fromMs`, before `toMs`. */
export type ReadPosition = { position: StreamPosition; fromMs: number; toMs: number };

/** The positions of the last seconds, for all streams of values of this process. */
export type Positions = {
  /** What is committed now. */
  read(): Promise<ReadPosition>;
  /** The newest that was read before `beforeMs`. */
  findBefore(beforeMs: number): ReadPosition | undefined;
  /** Reads one every second until it is ended. */
  follow(onError: (error: unknown) => void): () => void;
};

const everyMs = 1_000;

/** `keptMs`: how far back they are remembered. */
export function createPositions(
  db: Sql,
  monotonicClock: MonotonicClock,
  keptMs: number,
): Positions {
  const kept: ReadPosition[] = [];
  // They are for the streams of all accounts, whichever came first.
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

/** `lastTs`: of what was sent last; `waiting`: what is sent next, once it is due. */
type Sense = { lastTs: number; dueMs: number; waiting: Value | null };

/**
 * Lets a value of each sense through in `periodMs`: the first at once, then the newest of each period. It
 * remembers senses that had a value within the last period, no others.
 */
export class ValueThrottle {
  readonly periodMs: number;
  /** In the order in which they are due. */
  readonly #senses = new Map<string, Sense>();

  constructor(periodMs: number) {
    this.periodMs = periodMs;
  }

  /** Whether the value is to be sent now; else it waits, or gives way to a newer one. */
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

  /** Those whose turn has come, at most `limit`. */
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

  /** When the next one may be due; Infinity while there is none. */
  get nextMs(): number {
    const [first] = this.#senses.values();
    return first?.dueMs ?? Infinity;
  }

  #sent({ key, ts }: Value, monotonicMs: MonotonicMs): void {
    this.#senses.set(key, { lastTs: ts, dueMs: monotonicMs + this.periodMs, waiting: null });
  }
}
