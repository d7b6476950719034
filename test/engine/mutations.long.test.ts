import { expect, test } from 'vitest';
import { runProgram } from '../journeys/process.ts';
import { mutations } from './mutations.ts';

test('the vectors notice each of these mistakes', async () => {
  const program = runProgram(process.execPath, ['test/engine/mutants.ts']);
  expect({ status: await program.ended(), stderr: program.stderr() }).toEqual({
    status: 0,
    stderr: '',
  });
  const found = program
    .stdout()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { mistake: string; noticedBy: string[] });
  expect(found.map(({ mistake }) => mistake)).toEqual(mutations.map(({ mistake }) => mistake));
  expect(found.filter(({ noticedBy }) => noticedBy.length === 0)).toEqual([]);
});
