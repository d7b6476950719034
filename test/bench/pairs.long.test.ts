import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

type Results = {
  results: {
    work: string;
    against: string;
    pairs: { first: string; before: Record<string, number>; after: Record<string, number> }[];
    figures: { metric: string; before: number; after: number; ratio: Record<string, number> }[];
  }[];
};

const project = new URL('../..', import.meta.url).pathname;

test('compares this tree with itself, in all workloads', async () => {
  const out = mkdtempSync(join(tmpdir(), 'sensorium-pairs-smoke-'));
  const file = join(out, 'pairs.json');
  const args = ['bench/pairs.ts', '--before', '.', '--smoke', '--json', file];
  try {
    const run = promisify(execFile);
    const { stdout } = await run(process.execPath, args, { cwd: project, timeout: 220_000 });
    expect(stdout).toContain('| work | measured | before | after | ratio | 95 % interval |');
    const { results } = JSON.parse(readFileSync(file, 'utf8')) as Results;
    expect(results.map(({ work }) => work)).toEqual([
      'messages-1-plain',
      'messages-1-profile',
      'messages-50-plain',
      'messages-50-profile',
      'requests',
      'uplink',
    ]);
    for (const { work, pairs, figures } of results) {
      expect(pairs).toHaveLength(2);
      for (const { metric, before, after } of figures)
        for (const value of [before, after])
          expect(value, `${metric} of ${work}`).toEqual(expect.any(Number));
      const rate = figures.find(({ metric }) => metric.endsWith('PerSecond'));
      expect(rate?.before, work).toBeGreaterThan(0);
      const ratios = pairs.map(
        ({ before, after }) =>
          (after[rate?.metric ?? ''] ?? NaN) / (before[rate?.metric ?? ''] ?? NaN),
      );
      expect(rate?.ratio['low'], work).toBeCloseTo(Math.min(...ratios));
      expect(rate?.ratio['high'], work).toBeCloseTo(Math.max(...ratios));
    }
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
});
