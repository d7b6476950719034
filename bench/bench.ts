import { hasRedis, startRedis } from '../test/support/redis.ts';
import type { Row, RowResult } from './bench-context.ts';
import { startBenchDatabase } from './database.ts';
import { describeMachine } from './machine.ts';
import { readOptions, type BenchOptions } from './options.ts';
import { createReleases } from './releases.ts';
import { toMarkdown, writeResults } from './report.ts';
import { batches } from './rows/batches.ts';
import { configuration } from './rows/configuration.ts';
import { events } from './rows/events.ts';
import { idle } from './rows/idle.ts';
import { ingest, pipelined } from './rows/ingest.ts';
import { uplink } from './rows/uplink.ts';
import { limitsFor } from './service.ts';

const rows: Row[] = [ingest, pipelined, batches, idle, configuration, uplink, events];

await runBench(readOptions(rows.map(({ name }) => name)));

async function runBench(options: BenchOptions): Promise<void> {
  const releases = createReleases();
  try {
    const database = await startBenchDatabase(options.usedLogSegments);
    releases.defer(() => database.remove());
    const redis = hasRedis ? await startRedis() : null;
    if (redis) releases.defer(() => redis.kill());
    const results: RowResult[] = [];
    for (const row of rows) {
      if (options.only.length > 0 && !options.only.includes(row.name)) continue;
      console.log(row.name);
      const context = {
        options,
        database,
        redisUrl: redis?.url ?? null,
        tell: (line: string) => console.log(line),
        defer: releases.defer,
      };
      const depth = releases.depth();
      results.push(await row.run(context));
      await releases.downTo(depth);
    }
    const machine = {
      ...describeMachine(`${database.description}; ${database.settings.join(', ')}`),
      'limits raised for this': JSON.stringify(await limitsFor()),
    };
    console.log(toMarkdown(machine, options, results));
    if (options.outDir !== null)
      console.log(`Written to ${await writeResults(options.outDir, machine, options, results)}`);
  } finally {
    await releases.downTo(0);
  }
}
