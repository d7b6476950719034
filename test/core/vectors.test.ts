import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { checkProfile } from '../../src/core/profile.ts';
import { compileProfile } from '../../src/core/compile.ts';
import { evaluate, type Evaluation } from '../../src/core/evaluate.ts';
import { enter, startRuntime, type Runtime } from '../../src/core/runtime.ts';
import { Purpose } from '../../src/core/purpose.ts';
import { Vector } from './vector.ts';

const directory = new URL('../vectors/', import.meta.url);
const files = readdirSync(directory).filter((file) => file.endsWith('.json'));

/** Beside a file or a wire the runtime is text: it is read back before every step. */
const stored = (runtime: Runtime) => JSON.parse(JSON.stringify(runtime)) as Runtime;

describe.each(files)('%s', (file) => {
  const vectors = Vector.array().parse(
    JSON.parse(readFileSync(new URL(file, directory), 'utf8')) as unknown,
  );

  test.each(vectors)('$rule', ({ purposes, starts, steps, ends }) => {
    let profile = load(purposes);
    let runtime = startRuntime(profile);
    if (starts) runtime = enter(profile, runtime, starts);
    for (const step of steps) {
      const before = stored(runtime);
      if ('install' in step) {
        profile = load(step.install);
        runtime = startRuntime(profile, before);
      } else if ('enter' in step) {
        runtime = enter(profile, before, step.enter);
      } else {
        const evaluation = evaluate(profile, before, step.measurement);
        const { measurement, fires, moves } = step;
        expect({ measurement, ...seenFromOutside(evaluation) }).toEqual({
          measurement,
          fires,
          moves,
        });
        runtime = evaluation.runtime;
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

function seenFromOutside({ firings, transition }: Evaluation) {
  const fires = firings.map(({ event, record, ring }) => {
    const { puId, stId, evId } = event.cause.engine;
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
