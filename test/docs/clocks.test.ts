import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { clockReaders, randomReaders, readersOf } from '../../lint/clocks.ts';
import { modules } from '../../lint/modules.ts';

const reads =
  /\b(Date\.now|new Date\(|performance\.now|Math\.random|randomUUID|randomBytes|uptime)\b/;

const readers = [clockReaders, randomReaders].flatMap((table) =>
  Object.keys(table).flatMap((module) =>
    readersOf(table, module).map((file) => ({ module, file })),
  ),
);

test('each file that may read a clock or use randomness exists, in its module, and does so', () => {
  expect(readers.length).toBeGreaterThan(10);
  for (const { module, file } of readers) {
    expect(globSync(module), file).toContain(file);
    expect(readFileSync(file, 'utf8'), file).toMatch(reads);
  }
});

test('the modules named there are those of lint', () => {
  const known = [...modules.map(({ files }) => files), 'src/assembly/*.ts', 'src/*.ts'];
  const named = [...Object.keys(clockReaders), ...Object.keys(randomReaders)];
  expect(named.filter((module) => !known.includes(module))).toEqual([]);
});

test('names tell the clocks apart: `nowTs` is the time of day, `monotonicMs` the other', () => {
  const files = globSync([
    'src/**/*.{ts,tsx}',
    'connector/**/*.ts',
    'bench/**/*.ts',
    'test/**/*.ts',
  ]);
  expect(files.length).toBeGreaterThan(900);
  const unclear = new RegExp(['\\bnow', 'Ms\\b'].join(''));
  expect(files.filter((file) => unclear.test(readFileSync(file, 'utf8')))).toEqual([]);
});
