import { expect, test } from 'vitest';
import { runProgram } from '../journeys/process.ts';

const programs = ['engine', 'simulate', 'account', 'secret', 'backup', 'restore'];

test.each(programs)('npm run %s -- --help says on standard output how it is used', async (name) => {
  const program = runProgram(process.execPath, [`src/cli/${name}.ts`, '--help'], { env: {} });
  expect(await program.ended()).toBe(0);
  expect(program.stdout()).toContain(`npm run ${name}`);
  expect(program.stderr()).toBe('');
});

test.each(programs)('npm run %s -- --unknown says how it is used, as an error', async (name) => {
  const program = runProgram(process.execPath, [`src/cli/${name}.ts`, '--unknown'], { env: {} });
  expect(await program.ended()).toBe(2);
  expect(program.stdout()).toBe('');
  expect(program.stderr()).not.toBe('');
});
