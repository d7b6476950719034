import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runProgram } from '../../src/db/embedded/programs.ts';
import { stopCluster } from '../../src/db/embedded/cluster.ts';
import { makeTemporaryDir, startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/database.ts';
import { runOn } from '../support/template.ts';

const dir = makeTemporaryDir();
let cluster: Cluster;
beforeAll(async () => {
  cluster = await startThrowAwayCluster();
});
afterAll(async () => {
  await cluster.remove();
  rmSync(dir, { recursive: true });
});

/** A directory with a `pg_ctl` that runs this script instead. */
function makePgCtl(script: string): string {
  const binDir = mkdtempSync(join(dir, 'bin'));
  writeFileSync(join(binDir, 'pg_ctl'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return binDir;
}

it('a server that has ended by itself counts as stopped, whatever pg_ctl reports', async () => {
  await cluster.halt('fast');
  await cluster.halt('fast');
  await cluster.halt('immediate');
  await cluster.start();
});

it('a server that does not end does not count as stopped', async () => {
  const pid = cluster.pid();
  process.kill(pid, 'SIGSTOP');
  try {
    await expect(cluster.halt('fast', 1)).rejects.toThrow('pg_ctl ended with 1');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await cluster.halt('fast');
  await cluster.start();
});

it.skipIf(process.platform === 'win32')('a Ctrl-C does not reach its programs', async () => {
  const groupOf = (pid: string) => execFileSync('ps', ['-o', 'pgid=', '-p', pid]).toString().trim();
  const binDir = makePgCtl('ps -o pgid= -p $$');
  const theirs = (await runProgram({ binDir, owner: null }, 'pg_ctl', [])).trim();
  expect(theirs).toMatch(/^\d+$/);
  expect(theirs).not.toBe(groupOf(String(process.pid)));
});

it('a pg_ctl that a Ctrl-C ended all the same is run again', async () => {
  const done = join(dir, 'done');
  const binDir = makePgCtl(`[ -e ${done} ] || { touch ${done}; kill -INT $$; }`);
  await stopCluster({ binDir, owner: null }, cluster.dir, 'fast', 1);
});

it('a connection that the server ends while the pool closes does not count as lost', async () => {
  const errors: Error[] = [];
  const db = openTestDatabase(cluster.url(), { onIdleError: (error) => errors.push(error) });
  const { rows } = await db.query<{ pid: number }>('select pg_backend_pid() as pid');
  const pid = rows[0]?.pid ?? 0;
  const removed = new Promise((resolve) => db.pool.once('remove', resolve));
  // It does not notice that the client leaves before it is told to end.
  process.kill(pid, 'SIGSTOP');
  await db.close();
  await runOn(cluster.url(), (client) => client.query('select pg_terminate_backend($1)', [pid]));
  process.kill(pid, 'SIGCONT');
  await removed;
  expect(errors).toEqual([]);
});
