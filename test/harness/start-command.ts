import { readFileSync } from 'node:fs';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** What `npm start` tells V8: what is measured runs as everybody's does. */
export function startFlags(): string[] {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } };
  return scripts.start.split(' ').filter((word) => word.startsWith('--max-'));
}
