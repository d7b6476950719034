import { AsyncLocalStorage } from 'node:async_hooks';
import type { Sql } from '../db/sql.ts';
import type { MonotonicClock } from '../lib/clock.ts';
import type { StreamPosition } from '../streams/position.ts';
import { readPosition } from '../streams/read-position.ts';

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
