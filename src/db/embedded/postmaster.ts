import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ask, isPostgres, sslRequest } from '../../lib/servers.ts';
import { codeOf } from '../../lib/thrown.ts';
import { StartError } from '../../start-error.ts';
import type { ServerAddress } from './address.ts';
import { readPostmasterFile, type Postmaster } from './cluster.ts';
import type { SystemUser } from './programs.ts';
import { isPrivateDir, socketPathIn } from './socket-dir.ts';

/**
 * The server that runs on this cluster, or null. A file left by one that is gone is removed, also
 * where its number has since been given to some other process: PostgreSQL would refuse to start.
 */
export async function findPostmaster(clusterDir: string): Promise<Postmaster | null> {
  const written = await readPostmasterFile(clusterDir);
  if (written === null) return null;
  if (isAlive(written.pid) && readCommand(written.pid).includes(clusterDir)) return written;
  await rm(join(clusterDir, 'postmaster.pid'), { force: true });
  return null;
}

/**
 * Waits until the running server lets clients in, and gives its address; null when it ends instead, or
 * does not answer within the time. It wrote the address where only its user writes, so nobody is asked
 * for a proof. Throws a StartError where its socket's directory is no longer its own.
 */
export async function adoptPostmaster(
  clusterDir: string,
  owner: SystemUser | null,
  timeoutMs: number,
): Promise<ServerAddress | null> {
  // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for a server
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const running = await findPostmaster(clusterDir);
    // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for a server
    if (running === null || performance.now() > deadline) return null;
    if (running.isReady) {
      await requireOwnDir(running, owner);
      if (await answers(running.address)) return running.address;
    }
    await delay(100);
  }
}

/** It cannot be asked who uses it, so it is not ended either. */
async function requireOwnDir(
  { pid, address: { socketDir } }: Postmaster,
  owner: SystemUser | null,
): Promise<void> {
  if (socketDir === null || (await isPrivateDir(socketDir, owner))) return;
  // One that is about to end has removed its directory.
  if (!isAlive(pid)) return;
  throw new StartError(
    `${socketDir}: expected the directory of the database's socket, which is for its user alone; it is gone, or another one. Stop the service that uses it, end the server (kill ${pid}), and start again.`,
  );
}

async function answers({ socketDir, port }: ServerAddress): Promise<boolean> {
  const place =
    socketDir === null ? { host: '127.0.0.1', port } : { path: socketPathIn(socketDir) };
  return isPostgres(await ask(place, sslRequest, { timeoutMs: 2_000 }));
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
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
