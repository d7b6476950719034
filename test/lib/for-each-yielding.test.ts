import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { forEachYielding } from '../../src/lib/event-loop.ts';

test('visits everything that was there, in order, and yields to others', async () => {
  const things = new Set(Array.from({ length: 1_000 }, (_, n) => n));
  const visited: number[] = [];
  const seenByOthers: number[] = [];
  const others = (async () => {
    while (visited.length < 1_000) {
      seenByOthers.push(visited.length);
      await yieldToEventLoop();
    }
  })();
  await forEachYielding(things, (thing) => {
    visited.push(thing);
    things.delete(thing);
    // What is added meanwhile is not visited. Otherwise it would never end.
    things.add(thing + 1_000);
  });
  await others;
  expect(visited).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
  const longest = Math.max(...seenByOthers.map((count, n) => count - (seenByOthers[n - 1] ?? 0)));
  expect(longest).toBeLessThanOrEqual(200);
});

test('a few are visited at once', () => {
  const visited: string[] = [];
  const done = forEachYielding(['a', 'b'], (thing) => visited.push(thing));
  expect(visited).toEqual(['a', 'b']);
  return done;
});

test('an error ends it', async () => {
  const failing = forEachYielding([1, 2], () => {
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
});
