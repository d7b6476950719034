import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import { listWarnings, listWarningsYielding } from '../../src/engine/warnings.ts';
import { yieldToEventLoop } from '../../src/lib/event-loop.ts';
import { purposes } from './arbitraries.ts';
import { runs } from '../support/share.ts';

const pathOf = (index: number) => `/purposes/${index}`;
const senses = fc.array(
  fc.record({
    sId: fc.constantFrom('0x1', '0x2', '0x3'),
    min: fc.integer({ min: -5, max: 2 }),
    max: fc.integer({ min: 2, max: 9 }),
  }),
  { maxLength: 6 },
);

test('finds the same in parts as at once', async () => {
  await fc.assert(
    fc.asyncProperty(purposes, fc.option(fc.array(senses, { maxLength: 3 })), async (all, some) => {
      const devices = some ?? undefined;
      const atOnce = listWarnings(all, devices, pathOf);
      expect(await listWarningsYielding(all, devices, pathOf, yieldToEventLoop)).toEqual(
        atOnce.slice(0, 100),
      );
      // Repeated senses, and which device they belong to, make no difference.
      if (devices) {
        const distinct = new Map(devices.flat().map((sense) => [JSON.stringify(sense), sense]));
        expect(
          await listWarningsYielding(all, [[...distinct.values()]], pathOf, yieldToEventLoop),
        ).toEqual(atOnce.slice(0, 100));
      }
    }),
    { numRuns: runs(300) },
  );
});

/** States full of causes that search long lists and are never met. */
const searching = (causesOf: () => object[]) =>
  Purpose.parse({
    puId: 1,
    initStId: 1,
    states: Array.from({ length: 3 }, (_, stId) => ({
      stId: stId + 1,
      isGlobal: stId > 0,
      events: Array.from({ length: 64 }, (_unused, evId) => ({ evId, causes: causesOf() })),
    })),
  });

test('lets other work run in between', async () => {
  const isOneOf = Array.from({ length: 50 }, (_, value) => value);
  const purpose = searching(() => [{ sId: '0x1', thresholds: { isOneOf, isGt: 0 } }]);
  let turns = 0;
  let isDone = false;
  const counting = (async () => {
    while (!isDone) {
      await yieldToEventLoop();
      turns += 1;
    }
  })();
  expect(await listWarningsYielding([purpose], undefined, pathOf, yieldToEventLoop)).toEqual([]);
  isDone = true;
  await counting;
  expect(turns).toBeGreaterThan(2);
});

test('stops after a hundred warnings, and checks only so many devices', async () => {
  const never = searching(() => [{ sId: '0x1', thresholds: {} }]);
  expect(await listWarningsYielding([never], undefined, pathOf, yieldToEventLoop)).toHaveLength(
    100,
  );
  const beyond = searching(() => [{ sId: '0x1', thresholds: { isGt: 9 } }]);
  const ranges = Array.from({ length: 1_000 }, (_, min) => ({ sId: '0x1', min: -min, max: 1 }));
  const warnings = listWarnings([beyond], [ranges], pathOf);
  // 20,000 ranges of 1,000 devices each: those of 20 causes.
  expect(warnings).toHaveLength(20);
});
