import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/** Prettier leaves comments as they are. */
const widest = 120;

/** A line that is a comment. In TypeScript `--` begins one in an SQL statement. */
const comment = /^\s*(\/\/|\/\*|\*|--) ?/;

test('comments are at most 120 columns wide', () => {
  const files = globSync(
    '{src,connector,test,bench,config,lint,examples}/**/*.{ts,tsx,mjs,sql,css}',
    {
      exclude: ['**/node_modules/**', 'test/upgrades/fixtures/**', 'test/clients/typescript/**'],
    },
  );
  expect(files.length).toBeGreaterThan(1_000);
  const wide = files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        line.length > widest && comment.test(line) ? [`${file}:${index + 1}`] : [],
      ),
  );
  expect(wide).toEqual([]);
});
