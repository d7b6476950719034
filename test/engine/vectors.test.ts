import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { checkProfile } from '../../src/engine/check-profile.ts';
import { compileProfile } from '../../src/engine/compile.ts';
import type { Evaluation } from '../../src/engine/evaluate.ts';
import { enter, startRuntime } from '../../src/engine/runtime.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { run, start, stored } from './samples.ts';
import { Vector } from './vector.ts';

const directory = new URL('../vectors/', import.meta.url);
const files = readdirSync(directory).filter((file) => file.endsWith('.json'));

describe.each(files)('%s', (file) => {
  const vectors = Vector.array().parse(
    JSON.parse(readFileSync(new URL(file, directory), 'utf8')) as unknown,
  );

  test.each(vectors)('$rule', ({ purposes, starts, steps, ends }) => {
    let profile = load(purposes);
    let { runtime, seen } = start(profile);
    if (starts) runtime = enter(profile, runtime, starts, 0);
    for (const step of steps) {
      // What is kept is text: it is read back before every step.
      const before = stored(profile, { runtime, seen });
      if ('install' in step) {
        profile = load(step.install);
        runtime = startRuntime(profile, 0);
      } else if ('enter' in step) {
        runtime = enter(profile, before.runtime, step.enter, 0);
      } else {
        const after = run(profile, [step.measurement], before);
        const { measurement, fires, moves } = step;
        const observed = after.evaluations.map(observe);
        expect({ measurement, observed }).toEqual({ measurement, observed: [{ fires, moves }] });
        ({ runtime, seen } = after);
      }
    }
    expect({ puId: runtime.puId, stId: runtime.stId }).toEqual(ends);
  });
});

test('there are enough of them', () => {
  const count = files.reduce(
    (sum, file) =>
      sum + (JSON.parse(readFileSync(new URL(file, directory), 'utf8')) as unknown[]).length,
    0,
  );
  expect(count).toBeGreaterThanOrEqual(60);
});

function load(purposes: unknown[]) {
  const parsed = purposes.map((purpose) => Purpose.parse(purpose));
  expect(checkProfile(parsed)).toEqual([]);
  return compileProfile('p', parsed);
}

function observe({ firings, transition }: Evaluation) {
  const fires = firings.map(({ event, record, tells, isFirst }) => {
    const { puId, stId, evId } = event.cause.engine;
    const ring = tells === 'notice' || (tells === 'alarm' && isFirst);
    return { puId, stId, evId, record, ring, senses: event.cause.senses };
  });
  if (!transition) return { fires };
  const { to, event } = transition;
  const changed = event && {
    event: event.event,
    oldValue: event.oldValue,
    newValue: event.newValue,
  };
  return { fires, moves: { ...to, event: changed ?? null } };
}
