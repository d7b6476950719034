import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listProgramTests } from './starts-programs.ts';

const root = join(import.meta.dirname, '../..');
const listed = listProgramTests(root);

test.each([
  ['the service as a program', 'test/process/start.test.ts'],
  ['a database server, through another file', 'test/faults/faults.test.ts'],
  ['a browser', 'test/console/walk.test.ts'],
])('a test that starts %s is left out of `npm test`', (_, file) => {
  expect(listed).toContain(file);
});

test.each(['connector', 'engine', 'ingest', 'measurements'])(
  'most files of test/%s, which test promises to devices, start no program',
  (folder) => {
    const files = globSync(`test/${folder}/*.test.ts`, { cwd: root });
    const without = files.filter((file) => !listed.includes(file));
    expect(without.length).toBeGreaterThan(files.length / 2);
  },
);
