import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readOptionsOrExit } from '../src/cli/command-line.ts';
import { startEmbeddedDatabase } from '../src/db/embedded/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { fillRows } from '../test/backup/many-rows.ts';
import { numberOf } from './options.ts';
import { makeTemporaryDir, startThrowAwayCluster } from '../test/support/cluster.ts';
import { memoryOf } from '../test/support/processes.ts';
import { runOn, urlOf } from '../test/support/template.ts';

const usage = `Usage: npx node bench/portable.ts [--rows 10000000]

Prints how many seconds and how much memory portable copies take, embedded → TimescaleDB → embedded, with the
operator's commands.`;

const rows = readOptionsOrExit(usage, { rows: { type: 'string' } }, ({ rows }) =>
  numberOf('rows', rows, 10_000_000),
);
const log = {
  info: () => undefined,
  warn: (_context: object, message: string) => console.error(message),
};
const secret = 'a secret of the benchmark, long enough to be one';
const dir = makeTemporaryDir();

/** Runs a command and prints its output, its time and its peak memory. */
async function run(script: string, args: string[], env: Record<string, string>): Promise<void> {
  const startMs = performance.now();
  const child = spawn(process.execPath, [`src/cli/${script}.ts`, ...args], {
    env: { ...process.env, ...env },
    stdio: 'inherit',
  });
  let peakBytes = 0;
  const timer = setInterval(() => {
    try {
      peakBytes = memoryOf(child.pid ?? 0, 'VmHWM') ?? peakBytes;
    } catch {
      // The process has just ended.
    }
  }, 100);
  const [code] = (await once(child, 'exit')) as [number];
  clearInterval(timer);
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
  console.log(`> ${script}: ${seconds} s, ${Math.round(peakBytes / 1_048_576)} MiB at most\n`);
  if (code !== 0) throw new Error(`${script} ended with ${code}`);
}

const cluster = await startThrowAwayCluster({ timescaledb: true, durable: true });
try {
  const dataDir = join(dir, 'embedded');
  const embedded = await startEmbeddedDatabase({ dataDir, log });
  await migrate(embedded.connectionString, { log });
  await runOn(embedded.connectionString, (client) => fillRows(client, rows));
  await embedded.stop();
  console.log(`Filled an embedded database with ${rows} rows.\n`);

  await run('backup', ['--portable', join(dir, 'one')], { DATA_DIR: dataDir });
  await runOn(cluster.url(), (admin) => admin.query('create database target'));
  const url = urlOf(cluster.url(), 'target');
  const there = { DATABASE_URL: url, SECRET: secret, DATA_DIR: join(dir, 'none') };
  await run('restore', [join(dir, 'one')], there);
  const compressed = await runOn(url, (client) =>
    client.query(
      `select count(compress_chunk(c, true)) from show_chunks('measurement', older_than => interval '3 days') c`,
    ),
  );
  console.log(`Compressed ${JSON.stringify(compressed.rows[0])} chunks.\n`);
  await run('backup', ['--portable', join(dir, 'two')], there);
  await run('restore', [join(dir, 'two')], { DATA_DIR: join(dir, 'back') });
} finally {
  await cluster.remove();
  rmSync(dir, { recursive: true, force: true });
}
