import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { runProgram } from '../journeys/process.ts';
import { isLong, shortOnly } from '../support/share.ts';

/** The scripts of package.json that run our programs, except the service: file and name. */
const programs = Object.entries(manifest.scripts).flatMap(([name, script]) => {
  const file = /\b(?:src\/cli|bench|test\/faults|test\/upgrades)\/[\w-]+\.ts/.exec(script)?.[0];
  return file === undefined ? [] : [[name, file] as const];
});
const alone = readdirSync('bench')
  .filter((file) => file.endsWith('.ts'))
  .filter((file) => readFileSync(`bench/${file}`, 'utf8').includes('npx node bench/'))
  .map((file) => [`bench/${file}`, `bench/${file}`] as const);

/** `npm test` covers the commands beside `npm start`; `npm run test:nightly` covers those that measure. */
const here = [...programs, ...alone].filter(([, file]) => file.startsWith('src/cli/') !== isLong);

test('the list contains all programs', () => {
  const names = [...programs, ...alone].map(([name]) => name);
  expect(names).toEqual(expect.arrayContaining(['simulate', 'bench:load', 'oracle', 'fixture']));
  expect(names).toContain('bench/polls.ts');
});

test.each(here)('%s --help explains its use', async (name, file) => {
  const program = runProgram(process.execPath, [file, '--help'], { env: {} });
  expect(await program.ended()).toBe(0);
  expect(program.stdout()).toContain(name);
  expect(program.stderr()).toBe('');
});

test.each(here)('%s --unknown says what is wrong', async (_name, file) => {
  const program = runProgram(process.execPath, [file, '--unknown'], { env: {} });
  expect(await program.ended()).toBe(2);
  expect(program.stdout()).toBe('');
  expect(program.stderr()).toMatch(/^Unknown option '--unknown'\.\n/);
});

test.each(
  shortOnly<[string, string[], string]>([
    ['account', ['create'], 'create: an argument is missing.'],
    ['account', ['creat', 'a@example.org'], 'Unknown command "creat".'],
    ['account', ['list', 'a', 'b'], 'list: unexpected argument "a b".'],
    ['account', [], 'Expected a command.'],
    ['secret', ['constructor'], 'Unknown command "constructor".'],
    ['restore', [], 'Expected the directory of one backup.'],
    ['backup', ['a', 'b'], 'Expected one directory.'],
  ]),
)('%s %j: says what is wrong, and how it is used', async (name, args, said) => {
  const program = runProgram(process.execPath, [`src/cli/${name}.ts`, ...args], { env: {} });
  expect(await program.ended()).toBe(2);
  expect(program.stderr()).toContain(`${said}\n\nUsage:\n  `);
});

test('wrong numbers and names in options are reported without a stack trace', async () => {
  const program = runProgram(process.execPath, ['bench/bench.ts', '--rounds', 'x'], { env: {} });
  expect(await program.ended()).toBe(2);
  expect(program.stderr()).toMatch(/^--rounds: expected a number above 0, got "x"\.\n\nUsage: /);
});
