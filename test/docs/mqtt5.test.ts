import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const page = readFileSync(new URL('docs/mqtt5.md', root), 'utf8');
const rows = page.split('\n').flatMap((line) => {
  const [, clause, , file, title] = line.split('|').map((cell) => cell.trim().replaceAll('`', ''));
  return file?.endsWith('.test.ts') && title ? [{ clause, file, title }] : [];
});

test('there are statements', () => expect(rows.length).toBeGreaterThan(40));

test.each(rows)('$clause: $title ($file) is a test', ({ file, title }) => {
  const source = readFileSync(new URL(`test/connector/${file}`, root), 'utf8');
  expect(
    source.includes(`'${title}'`) || source.includes(`'${title.replaceAll("'", "\\'")}'`),
  ).toBe(true);
});
