import { makeCollectGarbage, measureHeap, type HeapUse } from './v8.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

type PressureOptions = {
  /** Parts of the limit: memory is short above the first, and is not any more below the second. */
  shortAt: number;
  enoughAt: number;
  /** Gives back what can be read again; told before anything is refused. */
  relieve: () => void;
  /** Told when memory becomes short, and when it no longer is. */
  onChange: (isShort: boolean, use: HeapUse) => void;
  intervalMs?: number;
  measure?: () => HeapUse;
  collect?: () => void;
  now?: MonotonicClock;
};

type Pressure = { isShort(): boolean; close(): void };

/** Collecting all garbage takes as long as the heap is large: not more often than this. */
const betweenCollectionsMs = 1_000;

/**
 * The last line of defence: looks at the heap a few times a second, and says that memory is short while
 * more is in use than the bound although caches were given back and all garbage was collected.
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
    // Most of it may be garbage, which a process that takes nothing in has no reason to collect.
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
