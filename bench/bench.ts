import { hasRedis, startRedis } from '../test/harness/redis.ts';
import type { Row, RowResult } from './bench-context.ts';
import { startBenchDatabase } from './database.ts';
import { describeMachine } from './machine.ts';
import { readOptions, type BenchOptions } from './options.ts';
import { toMarkdown, writeResults } from './report.ts';
import { batches } from './rows/batches.ts';
import { configuration } from './rows/configuration.ts';
import { events } from './rows/events.ts';
import { idle } from './rows/idle.ts';
import { ingest, pipelined } from './rows/ingest.ts';

const rows: Row[] = [ingest, pipelined, batches, idle, configuration, events];

await runBench(
  readOptions(
    process.argv.slice(2),
    rows.map(({ name }) => name),
  ),
);

async function runBench(options: BenchOptions): Promise<void> {
  const releases: (() => Promise<unknown>)[] = [];
  const release = async (until: number) => {
    while (releases.length > until) await releases.pop()?.();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void release(0).finally(() => process.exit(1)));
  try {
    const database = await startBenchDatabase(options.usedLogSegments);
    releases.push(() => database.remove());
    const redis = hasRedis ? await startRedis() : null;
    if (redis) releases.push(() => redis.kill());
    const results: RowResult[] = [];
    for (const row of rows) {
      if (options.only.length > 0 && !options.only.includes(row.name)) continue;
      console.log(row.name);
      const context = {
        options,
        database,
        redisUrl: redis?.url ?? null,
        tell: (line: string) => console.log(line),
        defer: (each: () => Promise<unknown>) => void releases.push(each),
      };
      const depth = releases.length;
      results.push(await row.run(context));
      await release(depth);
    }
    const machine = describeMachine(`${database.description}; ${database.settings.join(', ')}`);
    console.log(toMarkdown(machine, options, results));
    if (options.outDir !== null)
      console.log(`Written to ${await writeResults(options.outDir, machine, options, results)}`);
  } finally {
    await release(0);
  }
}
