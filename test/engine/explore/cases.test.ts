import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Purpose } from '../../../src/contract/purpose.ts';
import { casesOf } from '../../../src/engine/explore/cases.ts';
import { explore } from '../../../src/engine/explore/explore.ts';
import { runs } from '../../support/share.ts';
import { purposes } from '../arbitraries.ts';
import { purposesInTime } from '../arbitraries-in-time.ts';
import { startEvaluator, startReference } from '../engines.ts';
import { runVector } from '../run-vector.ts';
import { Vector } from '../vector.ts';

const folder = new URL('../../../examples/', import.meta.url);
const examples = readdirSync(folder).filter((file) => file.endsWith('.json'));
const read = (file: string) => [
  Purpose.parse(JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as unknown),
];

describe.each(examples)('%s', (file) => {
  const profile = read(file);
  const explored = explore(profile);

  test('each event fires, each alarm ends', () => {
    for (const { fires, ends } of explored.events) {
      expect(fires.is).toBe('witnessed');
      expect(ends?.is ?? 'witnessed').toBe('witnessed');
    }
  });

  test('its cases are vectors, which both engines pass', () => {
    const cases = Vector.array().parse(casesOf(profile, explored));
    expect(cases.length).toBeGreaterThan(0);
    for (const one of cases) {
      runVector(one, startEvaluator);
      runVector(one, startReference);
    }
  });
});

test('cases of any purposes are vectors, which the reference engine passes', () => {
  fc.assert(
    fc.property(fc.oneof(purposes, purposesInTime), (profile) => {
      const cases = casesOf(profile, explore(profile, { mostEffort: 200_000 }));
      for (const one of cases)
        runVector(Vector.parse(JSON.parse(JSON.stringify(one))), startReference);
    }),
    { numRuns: runs(60) },
  );
});
