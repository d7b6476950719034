import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import {
  awaitingAnswer,
  neededStates,
  type ProfileHappening,
  profileStates,
  transitionOf,
} from '../../src/contract/profile.ts';

const happenings = Object.keys({
  received: true,
  accepted: true,
  rejected: true,
  superseded: true,
  replaced: true,
} satisfies Record<ProfileHappening, true>) as ProfileHappening[];
const transitions = happenings.map(transitionOf);

const docs = new URL('../../docs/devices-reference.md', import.meta.url);

describe('the states of a profile on a device', () => {
  test('each but the first can be reached, and final states lead nowhere', () => {
    const ledTo = transitions.map(({ to }) => to).sort();
    expect(ledTo).toEqual([...profileStates].filter((state) => state !== 'pending').sort());
    const left = new Set(transitions.flatMap(({ from }) => from));
    expect([...left].sort()).toEqual(['current', 'pending', 'sent']);
  });

  test('a device has at most one that waits and one that runs: a transition to another ends them', () => {
    expect(awaitingAnswer).toEqual(['pending', 'sent']);
    expect(neededStates).toEqual(['pending', 'sent', 'current']);
  });

  test('the documentation has the table', async () => {
    const cell = (text: string) => text.replaceAll(/\s+/g, ' ').trim();
    const rows = (await readFile(docs, 'utf8'))
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) => line.split('|').slice(1, -1).map(cell).join(' | '));
    const begin = rows.findIndex((row) => row.startsWith('from | to |')) + 2;
    expect(rows.slice(begin, begin + transitions.length)).toEqual(
      transitions.map(
        ({ from, to, when, effects }) => `${from.join(', ')} | ${to} | ${when} | ${effects}`,
      ),
    );
    // And no more rows.
    expect(profileStates).not.toContain(rows[begin + transitions.length]?.split(' | ')[1]);
  });
});
