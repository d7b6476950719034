import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { files, pagesDir } from '../../src/http/docs.ts';

test('each file that the page names is in the package', async () => {
  for (const file of Object.keys(files))
    expect((await readFile(join(pagesDir(), file))).length).toBeGreaterThan(100);
});

test('the script, where no module loader is, makes the function that the page calls', async () => {
  const script = await readFile(join(pagesDir(), 'swagger-ui-bundle.js'), 'utf8');
  expect(script.slice(0, 1_000)).toMatch(/\w+\.SwaggerUIBundle=\w+\(\)/);
});
