import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import { profileOf } from './samples.ts';

const minute = 60_000;
const start = Date.UTC(2026, 10, 23, 8);
const [cold, warm] = [1, 2];

/** The state after each value, one a minute, of examples/cold-room.json: warm above 8, cold again below 6. */
function statesAfter(values: readonly number[]): number[] {
  const file = new URL('../../examples/cold-room.json', import.meta.url);
  const profile = profileOf(Purpose.parse(JSON.parse(readFileSync(file, 'utf8'))));
  const evaluator = new Evaluator(profile, startRuntime(profile, start));
  let state = cold;
  return values.map((val, n) => {
    const ts = start + n * minute;
    const { transition } = evaluator.measure(
      { sId: '0x10', val, ts },
      { t: ts, arrivedTs: ts },
      true,
    );
    return (state = transition?.to.stId ?? state);
  });
}

test('between the two thresholds a device keeps its state, whichever side it comes from', () => {
  expect(statesAfter([7, 7, 7, 7])).toEqual([cold, cold, cold, cold]);
  expect(statesAfter([9, 9, 7, 7, 6, 6])).toEqual([cold, warm, warm, warm, warm, warm]);
  expect(statesAfter([9, 9, 5, 5, 7, 7])).toEqual([cold, warm, warm, cold, cold, cold]);
});

test('a value that swings around one threshold moves the device once', () => {
  const swings = Array.from({ length: 20 }, (_, n) => (n % 4 < 2 ? 8.5 : 7.5));
  expect(new Set(statesAfter(swings).slice(1))).toEqual(new Set([warm]));
});
