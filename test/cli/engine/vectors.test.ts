import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runEngine } from './run-engine.ts';

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'answers-'));
  const written = await runEngine(['--answers', join(folder, 'ours')]);
  expect(written).toMatchObject({ status: 0, stderr: '' });
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A copy of this engine's answers with a change. */
function answersWith(name: string, change: (at: string) => void): string {
  const at = join(folder, name);
  cpSync(join(folder, 'ours'), at, { recursive: true });
  change(at);
  return at;
}

function replaceIn(file: string, from: RegExp, to: string): void {
  const text = readFileSync(file, 'utf8');
  expect(text).toMatch(from);
  writeFileSync(file, text.replace(from, to));
}

/** How many cases a file of vectors has. */
function countOf(name: string): number {
  return (JSON.parse(readFileSync(`test/vectors/${name}.json`, 'utf8')) as unknown[]).length;
}

test("the stand-alone engine answers all cases, by the service's rules of arrival", async () => {
  const { status, stdout } = await runEngine(['--vectors', join(folder, 'ours')]);
  expect(stdout).toMatch(/^(\d{3,}) of \1 cases agree\.$/m);
  expect(status).toBe(0);
});

test('the vectors are valid answers to themselves', async () => {
  const { status, stdout } = await runEngine(['--vectors', 'test/vectors']);
  expect(stdout).toMatch(/^(\d{3,}) of \1 cases agree\.$/m);
  expect(status).toBe(0);
});

test('a wrong answer is found, with its place', async () => {
  const wrong = answersWith('wrong', (at) =>
    replaceIn(join(at, 'numbers.ndjson'), /(?<="senses":.*)20.000001/, '20.000002'),
  );
  const { status, stdout } = await runEngine(['--vectors', wrong]);
  expect(stdout).toContain(
    'numbers.json /0/steps/1/fires/0/senses/0/val: expected 20.000001, found 20.000002\n    isGt is strictly greater.\n',
  );
  const count = countOf('numbers');
  expect(stdout).toContain(`numbers.ndjson: ${count - 1} of ${count} cases agree`);
  expect(status).toBe(1);
  const asJson = await runEngine(['--vectors', wrong, '--json']);
  const [difference, summary, ...more] = asJson.stdout.trim().split('\n');
  expect(JSON.parse(difference ?? '')).toMatchObject({
    kind: 'difference',
    file: 'numbers.json',
    case: 0,
    path: '/steps/1/fires/0/senses/0/val',
  });
  const told = JSON.parse(summary ?? '') as { cases: number; agree: number };
  expect(told.agree).toBe(told.cases - 1);
  expect([more, asJson.status]).toEqual([[], 1]);
});

test('a case without an answer is a difference; a file without answers is named and is not', async () => {
  const partly = answersWith('partly', (at) => {
    rmSync(join(at, 'over.ndjson'));
    replaceIn(join(at, 'windows.ndjson'), /^.*\n/, '');
  });
  const { status, stdout } = await runEngine(['--vectors', partly]);
  expect(stdout).toContain('windows.json /0: expected "an answer", found nothing');
  expect(stdout).toMatch(/cases agree; no answers to over.json\.\n$/);
  expect(status).toBe(1);
});

test.each<[name: string, change: (at: string) => void, message: string]>([
  [
    'misspelt',
    (at) => writeFileSync(join(at, 'window.ndjson'), ''),
    'window.ndjson: no such cases. Known cases: actions,',
  ],
  ['twice', (at) => writeFileSync(join(at, 'windows.json'), '[]'), 'answer the same cases.'],
  ['cut', (at) => replaceIn(join(at, 'age.ndjson'), /\}\n$/, ''), `age.ndjson:${countOf('age')}:`],
  [
    'renamed',
    (at) => replaceIn(join(at, 'age.ndjson'), /"rule":"A run/, '"rule":"One run'),
    'answers a case that is not in age.json: "One run',
  ],
  ['doubled', (at) => replaceIn(join(at, 'age.ndjson'), /^(.*\n)/, '$1$1'), 'twice.'],
  [
    'shapeless',
    (at) => replaceIn(join(at, 'age.ndjson'), /"steps":/, '"stages":'),
    'age.ndjson:1 /steps: ',
  ],
])('unreadable answers are refused: %s', async (name, change, message) => {
  const { status, stderr } = await runEngine(['--vectors', answersWith(name, change)]);
  expect(stderr).toContain(message);
  expect(status).toBe(1);
});

test('a folder without answers is refused', async () => {
  const { status, stderr } = await runEngine(['--vectors', 'docs']);
  expect(stderr).toContain(
    'docs has no answers: expected files like actions.json or actions.ndjson.',
  );
  expect(status).toBe(1);
});
