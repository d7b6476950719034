import { makeCollectGarbage, measureHeap, type HeapUse } from './v8.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

type PressureOptions = {
  /** Parts of the heap limit: memory becomes short above the first, and is no longer short below the second. */
  shortAt: number;
  enoughAt: number;
  /** Frees what can be read again. Called before anything is refused. */
  relieve: () => void;
  /** Called when memory becomes short, and when it no longer is. */
  onChange: (isShort: boolean, use: HeapUse) => void;
  intervalMs?: number;
  measure?: () => HeapUse;
  collect?: () => void;
  now?: MonotonicClock;
};

type Pressure = { isShort(): boolean; close(): void };

/** Time between full collections, which take longer the larger the heap is. */
const betweenCollectionsMs = 1_000;

/**
 * The last line of defence. Checks the heap a few times a second, and reports that memory is short if more than the
 * limit is in use even after freeing caches and collecting all garbage.
 */
export function startPressure(options: PressureOptions): Pressure {
  const { shortAt, enoughAt, relieve, onChange } = options;
  const { intervalMs = 250, measure = measureHeap, collect = makeCollectGarbage() } = options;
  const { now = () => performance.now() } = options;
  let isShort = false;
  let collectedMs = -Infinity;

  const isAbove = ({ usedBytes, limitBytes }: HeapUse, part: number) =>
    usedBytes > limitBytes * part;

  function measureCollected(): HeapUse {
    collect();
    collectedMs = now();
    return measure();
  }

  function look(): void {
    const bound = isShort ? enoughAt : shortAt;
    // Much of it may be garbage, which an idle process has no reason to collect.
    const isDue = isShort || isAbove(measure(), bound);
    if (!isDue || now() - collectedMs < betweenCollectionsMs) return;
    let use = measureCollected();
    if (isAbove(use, bound)) {
      relieve();
      use = measureCollected();
    }
    if (isAbove(use, bound) === isShort) return;
    isShort = !isShort;
    onChange(isShort, use);
  }

  const timer = setInterval(look, intervalMs);
  timer.unref();
  return { isShort: () => isShort, close: () => clearInterval(timer) };
}
