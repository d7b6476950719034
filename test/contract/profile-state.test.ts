import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import {
  awaitingAnswer,
  neededStates,
  profileStates,
  profileTransitions,
} from '../../src/contract/profile.ts';

const docs = new URL('../../docs/devices-reference.md', import.meta.url);

describe('the states of a profile on a device', () => {
  test('each but the first can be reached, and final states lead nowhere', () => {
    const ledTo = profileTransitions.map(({ to }) => to).sort();
    expect(ledTo).toEqual([...profileStates].filter((state) => state !== 'pending').sort());
    const left = new Set(profileTransitions.flatMap(({ from }) => from));
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
    expect(rows.slice(begin, begin + profileTransitions.length)).toEqual(
      profileTransitions.map(
        ({ from, to, when, effects }) => `${from.join(', ')} | ${to} | ${when} | ${effects}`,
      ),
    );
    // And no more rows.
    expect(profileStates).not.toContain(rows[begin + profileTransitions.length]?.split(' | ')[1]);
  });
});
