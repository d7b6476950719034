import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Memory in use, and V8's limit, in bytes. */
export type HeapUse = { usedBytes: number; limitBytes: number };

/**
 * Tunes V8's garbage collector for objects that live as long as a commit takes. Call it before anything is created. V8
 * would allocate kinds of objects that often survive directly in the old space (pretenuring), where they stay, with
 * everything that they refer to, until the next full collection. Without pretenuring the old space stays small, and
 * full collections are cheap enough to be frequent.
 */
export function tuneCollector(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--heap-growing-percent=50');
}

/** Objects, and their buffers outside V8's heap. */
export function measureHeap(): HeapUse {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return { usedBytes: used_heap_size + external_memory, limitBytes: findHeapLimit() };
}

const mebibyte = 1_048_576;
/** The default of a 64-bit Node. */
const usualSemiSpace = 64;

/**
 * V8's limit for objects that survive, as set by `--max-old-space-size`. The limit that V8 reports includes three
 * semi-spaces, which only new objects use.
 */
export function findHeapLimit(): number {
  const { heap_size_limit: limit } = getHeapStatistics();
  const flag = process.execArgv.findLast((arg) => arg.startsWith('--max-semi-space-size='));
  const semiSpace = Number(flag?.split('=')[1]) || usualSemiSpace;
  return Math.max(limit - 3 * semiSpace * mebibyte, limit / 4);
}

/** Returns a function that collects all garbage. V8 allows that only with a flag, which may be set at any time. */
export function makeCollectGarbage(): () => void {
  let gc: (() => void) | undefined;
  return () => {
    if (!gc) {
      setFlagsFromString('--expose-gc');
      gc = runInNewContext('gc') as () => void;
    }
    gc();
  };
}
