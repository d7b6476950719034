import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { clockReaders, clockReadersOf } from '../../lint/clocks.ts';
import { rooms } from '../../lint/rooms.ts';

const reads =
  /\b(Date\.now|new Date\(|performance\.now|Math\.random|randomUUID|randomBytes|uptime)\b/;

const readers = Object.keys(clockReaders).flatMap((room) =>
  clockReadersOf(room).map((file) => ({ room, file })),
);

test('each file that may read a clock or draw at random is there, in its room, and does', () => {
  expect(readers.length).toBeGreaterThan(10);
  for (const { room, file } of readers) {
    expect(globSync(room), file).toContain(file);
    expect(readFileSync(file, 'utf8'), file).toMatch(reads);
  }
});

test('the rooms that they are named by are those of lint', () => {
  const known = [...rooms.map(({ files }) => files), 'src/assembly/*.ts', 'src/*.ts'];
  expect(Object.keys(clockReaders).filter((room) => !known.includes(room))).toEqual([]);
});
