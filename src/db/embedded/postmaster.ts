import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { connectionStringOf, readPostmasterFile } from './cluster.ts';

/**
 * The server that runs on this cluster, or null. A file left by one that is gone is removed, also
 * where its number has since been given to some other process: PostgreSQL would refuse to start.
 */
export async function findPostmaster(
  clusterDir: string,
): Promise<{ pid: number; port: number } | null> {
  const written = await readPostmasterFile(clusterDir);
  if (written === null) return null;
  if (isAlive(written.pid) && readCommand(written.pid).includes(clusterDir)) return written;
  await rm(join(clusterDir, 'postmaster.pid'), { force: true });
  return null;
}

/**
 * Waits until the running server lets us in, and gives its port; null when it ends instead, or does
 * not answer within the time.
 */
export async function adoptPostmaster(
  clusterDir: string,
  password: string,
  timeoutMs: number,
): Promise<number | null> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const running = await findPostmaster(clusterDir);
    if (running === null || Date.now() > deadline) return null;
    if (await isOurs(running.port, clusterDir, password)) return running.port;
    await delay(100);
  }
}

async function isOurs(port: number, clusterDir: string, password: string): Promise<boolean> {
  if (!(port > 0)) return false;
  const client = new pg.Client({
    connectionString: connectionStringOf(port, password, 'postgres'),
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ dir: string }>(
      `select current_setting('data_directory') as dir`,
    );
    return rows[0]?.dir === clusterDir;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function readCommand(pid: number): string {
  try {
    if (process.platform === 'linux')
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return '';
  }
}
