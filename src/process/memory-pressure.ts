import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What is in use, and what V8 gives at most, in bytes. */
export type HeapUse = { usedBytes: number; limitBytes: number };

export type PressureOptions = {
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
  now?: () => number;
};

export type Pressure = { isShort(): boolean; close(): void };

/** Collecting all garbage takes as long as the heap is large: not more often than this. */
const betweenCollectionsMs = 1_000;

/**
 * The last line of defence: looks at the heap a few times a second, and says that memory is short while
 * more is in use than the bound although caches were given back and all garbage was collected.
 */
export function startPressure(options: PressureOptions): Pressure {
  const { shortAt, enoughAt, relieve, onChange } = options;
  const { intervalMs = 250, measure = measureHeap, collect = collectGarbage() } = options;
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

/** Objects, and the buffers that they hold outside of V8's heap. */
export function measureHeap(): HeapUse {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return { usedBytes: used_heap_size + external_memory, limitBytes: findHeapLimit() };
}

const mebibyte = 1_048_576;
/** Of a 64-bit Node whose command line names none. */
const usualSemiSpace = 64;

/**
 * What V8 gives to objects that live: what `--max-old-space-size` names. The limit that it tells has
 * room for three semi-spaces beside it, where new objects are, and nothing else fits.
 */
export function findHeapLimit(): number {
  const { heap_size_limit: limit } = getHeapStatistics();
  const flag = process.execArgv.findLast((arg) => arg.startsWith('--max-semi-space-size='));
  const semiSpace = Number(flag?.split('=')[1]) || usualSemiSpace;
  return Math.max(limit - 3 * semiSpace * mebibyte, limit / 4);
}

/** V8 lets a program collect all garbage where a flag says so; it may be set at any time. */
function collectGarbage(): () => void {
  let gc: (() => void) | undefined;
  return () => {
    if (!gc) {
      setFlagsFromString('--expose-gc');
      gc = runInNewContext('gc') as () => void;
    }
    gc();
  };
}
