import { expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import { listWarnings } from '../../src/engine/warnings.ts';
import { blocksOf, readProjectFile } from './readme.ts';

/** The examples on the page are purposes, an event's causes or groups of causes, or a cause. */
function purposeOf(shown: Record<string, unknown>) {
  if ('states' in shown) return shown;
  const isOfEvent = 'causes' in shown || 'anyOf' in shown;
  const event = { evId: 1, ...(isOfEvent ? shown : { causes: [shown] }) };
  return { puId: 1, initStId: 1, states: [{ stId: 1, events: [event] }] };
}

const examples = blocksOf(readProjectFile('docs/purposes.md'), 'json').map(
  (text) => JSON.parse(text) as Record<string, unknown>,
);

test('each example on the page about purposes is accepted as it is, without warnings', () => {
  expect(examples.length).toBeGreaterThan(4);
  for (const example of examples) {
    const given = purposeOf(example);
    const purpose = Purpose.parse(given);
    expect(purpose).toMatchObject(given);
    expect(listWarnings([purpose])).toEqual([]);
  }
});

test("the engine's page is short, and begins with the procedure", () => {
  const lines = readProjectFile('docs/engine.md').split('\n');
  expect(lines.length).toBeLessThanOrEqual(345);
  expect(lines.find((line) => line.startsWith('## '))).toBe('## The procedure');
});
