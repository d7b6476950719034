import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { Warning } from '../../src/contract/warnings.ts';
import { type App, startApp } from '../devices/app.ts';
import { mutations, type Json } from './mutations.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const directory = new URL('../../examples/', import.meta.url);
const examples = readdirSync(directory)
  .filter((file) => file.endsWith('.json'))
  .map((file) => JSON.parse(readFileSync(new URL(file, directory), 'utf8')) as Json);

/** Codes of warnings about unknown members, polygons and actions: before them, none of this was reported. */
const newCodes = new Set(['unknown-member', 'polygon-round-pole', 'incomplete-action']);
const mutants = mutations(examples, 34);

type Fate = 'refused' | 'warned' | 'works' | 'silent';

async function fateOf(token: string, purpose: Json): Promise<[now: Fate, before: Fate]> {
  const answer = await app.call('POST', '/v2/purposes', { token, body: purpose });
  if (answer.status === 400) return ['refused', 'refused'];
  expect(answer.status).toBe(200);
  const codes = (answer.body['warnings'] as Warning[]).map(({ code }) => code);
  // Correct is what a reader of the specification would have stored, with its defaults.
  const uuid = String(answer.body['purposeUuid']);
  const stored = await app.call('GET', `/v2/purposes/${uuid}`, { token });
  const otherwise: Fate = isWithin(purpose, stored.body) ? 'works' : 'silent';
  const fate = (isSaid: boolean): Fate => (isSaid ? 'warned' : otherwise);
  return [fate(codes.length > 0), fate(codes.some((code) => !newCodes.has(code)))];
}

/** Whether everything that was sent is stored as it was sent; true and "true" are the same here. */
function isWithin(sent: Json, stored: unknown): boolean {
  if (typeof sent !== 'object' || sent === null) return String(sent) === String(stored);
  if (typeof stored !== 'object' || stored === null) return false;
  return Object.entries(sent).every(([key, value]) =>
    isWithin(value, (stored as Record<string, unknown>)[key]),
  );
}

test('each of 200 wrong purposes is refused, causes a warning, or works as it is written', async () => {
  const token = await app.account();
  const counts = { now: new Map<string, number>(), before: new Map<string, number>() };
  const silent: string[] = [];
  for (const { kind, what, purpose, mayWork } of mutants) {
    const [now, before] = await fateOf(token, purpose);
    const isSilent = now === 'silent' || (now === 'works' && !mayWork);
    if (isSilent) silent.push(`${kind}: ${what}`);
    const wasSilent = before === 'silent' || (before === 'works' && !mayWork);
    count(counts.now, isSilent ? 'silent' : now);
    count(counts.before, wasSilent ? 'silent' : before);
  }
  expect(silent).toEqual([]);
  expect(mutants.length).toBeGreaterThanOrEqual(200);
  // Otherwise the mutations would show nothing.
  expect(counts.before.get('silent')).toBeGreaterThan(30);
});

test('the examples themselves cause no warnings', async () => {
  const token = await app.account();
  for (const example of examples) expect(await fateOf(token, example)).toEqual(['works', 'works']);
  expect(examples.every((example) => Purpose.safeParse(example).success)).toBe(true);
});

const count = (counts: Map<string, number>, fate: string) =>
  void counts.set(fate, (counts.get(fate) ?? 0) + 1);
