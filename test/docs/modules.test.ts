import { globSync } from 'node:fs';
import { expect, test } from 'vitest';
import { modules } from '../../lint/modules.ts';

/** Modules that combine the others, and one that must run on any version of Node. */
const free = ['src/assembly/**', 'src/cli/**', 'src/process/install/**', 'src/*.ts'];

test('each file of src and connector belongs to a module whose imports lint checks, or is exempt', () => {
  const files = globSync(['src/**/*.{ts,mjs}', 'connector/**/*.ts']).filter(
    (file) => !file.endsWith('.d.ts') && !file.startsWith('src/db/migrations/'),
  );
  const held = new Set(globSync([...modules.map((module) => module.files), ...free]));
  expect(files.length).toBeGreaterThan(200);
  expect(files.filter((file) => !held.has(file))).toEqual([]);
});

test('every module that is named exists', () => {
  expect(modules.map(({ files }) => files).filter((files) => globSync(files).length === 0)).toEqual(
    [],
  );
});
