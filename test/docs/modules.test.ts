import { globSync } from 'node:fs';
import { expect, test } from 'vitest';
import { modules } from '../../lint/modules.ts';

/** Modules that bring the others together, and one that must run on any Node. */
const free = ['src/assembly/**', 'src/cli/**', 'src/process/install/**', 'src/*.ts'];

test('each file of src and connector belongs to a room whose imports are held by lint, or is free', () => {
  const files = globSync(['src/**/*.{ts,mjs}', 'connector/**/*.ts']).filter(
    (file) => !file.endsWith('.d.ts') && !file.startsWith('src/db/migrations/'),
  );
  const held = new Set(globSync([...modules.map((module) => module.files), ...free]));
  expect(files.length).toBeGreaterThan(200);
  expect(files.filter((file) => !held.has(file))).toEqual([]);
});

test('no room is named that is not there', () => {
  expect(modules.map(({ files }) => files).filter((files) => globSync(files).length === 0)).toEqual(
    [],
  );
});
