import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { compareAnswer } from '../../../src/cli/engine/vectors.ts';
import { blocksOf, readProjectFile } from '../../docs/readme.ts';

type Case = Parameters<typeof compareAnswer>[0];
type Answer = Parameters<typeof compareAnswer>[1];
type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

const given = ['measurement', 'message', 'tick', 'clock', 'enter', 'install', 'arrivedTs'];
const optional = ['ring', 'first', 'ageMs', 'began', 'why', 'ended', 'nextDueTs'];

/** The answer of an engine that omits what it may. */
function least({ rule, steps, ends }: Case): Answer {
  const asked = steps.map((step) => {
    const kept = Object.entries(step).filter(([name]) => !given.includes(name));
    return Object.fromEntries(kept);
  });
  return { rule, steps: without(asked, optional) as Answer['steps'], ends };
}

function without(value: Json, names: string[]): Json {
  if (Array.isArray(value)) return value.map((one) => without(one, names));
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => !names.includes(name));
  return Object.fromEntries(kept.map(([name, member]) => [name, without(member, names)]));
}

/** Every value that differs from this one in one place. */
function* changed(value: Json): Generator<Json> {
  if (typeof value === 'number') yield value === 0 ? 1 : 2 * value;
  else if (typeof value === 'string') yield `${value}!`;
  else if (typeof value === 'boolean') yield !value;
  else if (value === null) yield { event: 'stateChanged' };
  else if (Array.isArray(value)) {
    yield [...value, value[0] ?? { fires: [] }];
    for (const [index, one] of value.entries()) {
      yield value.toSpliced(index, 1);
      for (const other of changed(one)) yield value.with(index, other);
    }
  } else {
    for (const [name, member] of Object.entries(value)) {
      const rest = without(value, []) as Record<string, Json>;
      delete rest[name];
      const isNone = Array.isArray(member) ? member.length === 0 : member === null;
      // An absent list is the same as an empty one.
      if (!(isNone && ['ticks', 'moves'].includes(name))) yield rest;
      for (const other of changed(member)) yield { ...value, [name]: other };
    }
  }
}

const folder = 'test/vectors';
const files = readdirSync(folder)
  .filter((file) => file.endsWith('.json'))
  .map((name) => ({ name, cases: JSON.parse(readProjectFile(`${folder}/${name}`)) as Case[] }));

describe.each(files)('$name', ({ cases }) => {
  test('its cases have distinct rules', () => {
    expect(new Set(cases.map(({ rule }) => rule)).size).toBe(cases.length);
  });

  test('an engine may omit what only the service has to know', () => {
    for (const one of cases) expect(compareAnswer(one, least(one))).toEqual([]);
  });

  test('any other difference, omission or addition is found', () => {
    let tried = 0;
    for (const one of cases) {
      const { rule, ...answer } = least(one);
      for (const other of changed(answer)) {
        const { steps, ends } = other as Answer;
        if (!steps || !ends) continue;
        tried += 1;
        const found = compareAnswer(one, { rule, steps, ends });
        if (found.length === 0) expect({ rule, other }).toBe('a difference');
      }
    }
    expect(tried).toBeGreaterThan(50);
  });
});

test('unexpected moves and ticks are found', () => {
  const [one] = files
    .flatMap(({ cases }) => cases)
    .filter(({ rule }) => rule.startsWith('isGt is'));
  if (!one) throw new Error('that case is gone');
  for (const more of [{ moves: { puId: 1, stId: 1, event: null } }, { ticks: [{ fires: [] }] }]) {
    const answer = least(one);
    Object.assign(answer.steps[0] ?? {}, more);
    expect(compareAnswer(one, answer)).toHaveLength(1);
  }
});

test('the answer in the documentation is right', () => {
  const blocks = blocksOf(readProjectFile('test/vectors/README.md'), 'json');
  const shown = blocks
    .filter((text) => text.includes('"rule"'))
    .map((text) => JSON.parse(text) as Answer);
  expect(shown).toHaveLength(1);
  const cases = files.flatMap((file) => file.cases);
  for (const answer of shown) {
    const found = cases.filter(({ rule }) => rule === answer.rule);
    expect(found.map((one) => compareAnswer(one, answer))).toEqual([[]]);
  }
});
