import { globSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

/** Helpers that start the service as a program, a database server or a browser. */
const starters = [
  'test/journeys/process.ts',
  'test/support/cluster.ts',
  'test/support/chromium.ts',
  'test/faults/service-process.ts',
];

const imported = /^(?:import|export)\s(?!type\b)[^;]*?\sfrom\s+'(\.[^']+\.ts)'/gm;

/**
 * The test files below `root` that start programs of their own: they import a helper that does, directly or through
 * other files of `test/`. Paths are relative to `root`.
 */
export function listProgramTests(root: string): string[] {
  const known = new Map<string, boolean>(starters.map((file) => [file, true]));
  const starts = (file: string): boolean => {
    const answer = known.get(file);
    if (answer !== undefined) return answer;
    // Preliminary, for files that import each other.
    known.set(file, false);
    const targets = [...readFileSync(join(root, file), 'utf8').matchAll(imported)]
      .map(([, target = '']) => relative(root, resolve(root, file, '..', target)))
      .filter((target) => target.startsWith('test/'));
    const does = targets.some(starts);
    known.set(file, does);
    return does;
  };
  const files = globSync('test/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] });
  return files.filter(starts).toSorted();
}
