import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const project = new URL('../..', import.meta.url).pathname;

/** What `npm start` of a checkout tells V8: what is measured runs as everybody's does. */
export function startFlags(dir = project): string[] {
  const text = readFileSync(join(dir, 'package.json'), 'utf8');
  const { scripts } = JSON.parse(text) as { scripts: { start: string } };
  return scripts.start.split(' ').filter((word) => word.startsWith('--max-'));
}
