import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What is in use, and what V8 gives at most, in bytes. */
export type HeapUse = { usedBytes: number; limitBytes: number };

/**
 * Sets V8's collector up for objects that live as long as a commit takes; to be called before
 * anything is created. V8 would allocate kinds of objects that often survive in the old space at once
 * (pretenuring), where they stay until the next full collection with all that they point to. Without
 * that the old space stays small, so that full collections are cheap enough to be frequent.
 */
export function tuneCollector(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--heap-growing-percent=50');
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

/** Collects all garbage, which V8 lets a program do where a flag says so; it may be set at any time. */
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
