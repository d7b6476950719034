import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

type Results = {
  rows: {
    row: string;
    rounds: Record<string, Record<string, number>[]>;
    comparisons: { metric: string; ours: string; beside: string }[];
  }[];
};

const project = new URL('../..', import.meta.url).pathname;

test('the benchmark still measures every row, whatever the times', async () => {
  const out = mkdtempSync(join(tmpdir(), 'sensorium-bench-smoke-'));
  try {
    await promisify(execFile)(process.execPath, ['bench/bench.ts', '--smoke', '--out', out], {
      cwd: project,
      timeout: 150_000,
    });
    const { rows } = JSON.parse(readFileSync(join(out, 'latest.json'), 'utf8')) as Results;
    expect(rows.map(({ row }) => row)).toEqual([
      'ingest',
      'pipelined',
      'batches',
      'idle',
      'configuration',
      'uplink',
      'events',
    ]);
    for (const { rounds, comparisons } of rows)
      for (const { metric, ours, beside } of comparisons)
        for (const name of [ours, beside])
          expect(rounds[name]?.[0]?.[metric], `${metric} of ${name}`).toEqual(expect.any(Number));
    expect(readFileSync(join(out, 'latest.md'), 'utf8')).toContain('| bare aedes |');
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
});
