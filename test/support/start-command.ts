import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const project = new URL('../..', import.meta.url).pathname;

/** The V8 flags of `npm start` in a checkout, so that tests and benchmarks run the service with them. */
export function startFlags(dir = project): string[] {
  const text = readFileSync(join(dir, 'package.json'), 'utf8');
  const { scripts } = JSON.parse(text) as { scripts: { start: string } };
  return scripts.start.split(' ').filter((word) => word.startsWith('--max-'));
}
