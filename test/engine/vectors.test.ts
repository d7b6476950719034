import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { startEvaluator, startReference, startStoringEvaluator } from './engines.ts';
import { runVector } from './run-vector.ts';
import { Vector } from './vector.ts';

const directory = new URL('../vectors/', import.meta.url);
const files = readdirSync(directory).filter((file) => file.endsWith('.json'));
const read = (file: string) =>
  Vector.array().parse(JSON.parse(readFileSync(new URL(file, directory), 'utf8')) as unknown);

describe.each(files)('%s', (file) => {
  const vectors = read(file);

  // The runtime is kept as text, so one engine reads it back before each call.
  test.each(vectors)('$rule', (vector) => {
    runVector(vector, startStoringEvaluator);
    runVector(vector, startEvaluator);
  });

  test.each(vectors)('in the reference: $rule', (vector) => {
    runVector(vector, startReference);
  });
});

test('there are enough vectors', () => {
  const count = files.reduce((sum, file) => sum + read(file).length, 0);
  expect(count).toBeGreaterThanOrEqual(290);
});
