import { startPressure } from '../../src/process/memory-pressure.ts';
import { measureHeap } from '../../src/process/v8.ts';

// A process with a small heap that fills it, frees it, and reports what it is told meanwhile.
const mebibyte = 1_048_576;
const objectsOf = (bytes: number) =>
  Array.from({ length: bytes / 64 }, (_, n) => ({ n, at: `${n}` }));

let cache: unknown[] = [];
let held: unknown[] = [];
let isRelieved = false;
const say = (what: string) => process.send?.(what);

const pressure = startPressure({
  shortAt: 0.8,
  enoughAt: 0.5,
  intervalMs: 20,
  relieve() {
    if (cache.length > 0) say('relieved');
    isRelieved ||= cache.length > 0;
    cache = [];
  },
  onChange: (isShort) => say(isShort ? 'short' : 'enough'),
});

/** Objects, until this part of the limit is in use. */
function fill(part: number): unknown[] {
  const objects: unknown[] = [];
  for (;;) {
    const { usedBytes, limitBytes } = measureHeap();
    if (usedBytes > limitBytes * part) return objects;
    objects.push(objectsOf(mebibyte / 2));
  }
}

/** Repeatedly, because V8 may by itself collect what filled the heap before. */
function fillCache(): void {
  if (isRelieved) return;
  cache.push(...fill(0.85));
  setTimeout(fillCache, 20);
}

process.on('message', (command: string) => {
  if (command === 'garbage') fill(0.85);
  if (command === 'cache') fillCache();
  if (command === 'hold') held = fill(0.85);
  if (command === 'some') held = held.slice(0, held.length * 0.75);
  if (command === 'free') held = [];
  if (command === 'ask') {
    const { usedBytes, limitBytes } = measureHeap();
    process.send?.({ isShort: pressure.isShort(), part: usedBytes / limitBytes });
  }
});
