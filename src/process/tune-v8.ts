import { setFlagsFromString } from 'node:v8';

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
