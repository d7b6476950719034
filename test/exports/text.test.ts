import { expect, test } from 'vitest';
import { asJsonList } from '../../src/exports/exports.ts';

async function readAll(pieces: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const piece of pieces) all.push(piece);
  return all;
}

test('a list whose items are all filtered out is still written, and ends with its reader', async () => {
  let read = 0;
  async function* blocks() {
    for (; read < 1_000; read += 1) yield '';
  }
  const whole = await readAll(asJsonList('events', blocks(), (text) => text, 7));
  expect(JSON.parse(whole.join(''))).toEqual({ events: [], timestamp: 7 });
  expect(whole).toHaveLength(1_002);
  expect(read).toBe(1_000);

  read = 0;
  const left = asJsonList('events', blocks(), (text) => text, 7);
  expect((await left.next()).value).toBe('{"events":[');
  await left.next();
  await left.return(undefined);
  expect(read).toBe(0);
});

test('commas separate the items, whatever comes between', async () => {
  async function* blocks() {
    yield* ['', '1,2', '', '', '3', ''];
  }
  const pieces = await readAll(asJsonList('events', blocks(), (block) => block, 7));
  expect(JSON.parse(pieces.join(''))).toEqual({ events: [1, 2, 3], timestamp: 7 });
});
