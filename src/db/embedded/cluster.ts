import { chown, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { ServerAddress } from './address.ts';
import { runProgram, type Programs } from './programs.ts';

/** Made with the cluster; it cannot lose its rights. For backups and for `handOver` only. */
export const superuser = 'sensorium';

/** Makes an empty cluster that only the password opens. `clusterDir` is empty and the owner's. */
export async function createCluster(
  programs: Programs,
  clusterDir: string,
  { password, locale }: { password: string; locale: string[] },
): Promise<void> {
  const passwordFile = `${clusterDir}.password`;
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  try {
    if (programs.owner) await chown(passwordFile, programs.owner.uid, programs.owner.gid);
    await runProgram(programs, 'initdb', [
      '--pgdata', clusterDir,
      '--username', superuser,
      '--auth', 'scram-sha-256',
      '--pwfile', passwordFile,
      '--encoding', 'UTF8',
      '--no-instructions',
      ...locale,
    ]); // prettier-ignore
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** Settings as `name=value`; values must not hold spaces. Resolves when the server accepts connections. */
export async function startCluster(
  programs: Programs,
  clusterDir: string,
  {
    settings,
    address,
    timeoutSeconds,
  }: { settings: string[]; address: ServerAddress; timeoutSeconds: number },
): Promise<void> {
  const all = [...listenAt(address), ...settings];
  await runProgram(programs, 'pg_ctl', [
    'start',
    '--pgdata', clusterDir,
    '--log', join(clusterDir, 'start.log'),
    '--wait', '--timeout', String(timeoutSeconds),
    '--silent',
    '--options', all.map((setting) => `-c ${setting}`).join(' '),
  ]); // prettier-ignore
}

function listenAt({ socketDir, port }: ServerAddress): string[] {
  if (socketDir === null)
    return ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories='];
  return [
    'listen_addresses=',
    `port=${port}`,
    `unix_socket_directories=${socketDir}`,
    'unix_socket_permissions=0700',
  ];
}

/** What a server wrote about itself when it started, and whether it lets clients in by now. */
export type Postmaster = { pid: number; address: ServerAddress; isReady: boolean };

/** PostgreSQL's `postmaster.pid`, line by line (its source, miscadmin.h); null where there is none. */
export async function readPostmasterFile(clusterDir: string): Promise<Postmaster | null> {
  try {
    const lines = (await readFile(join(clusterDir, 'postmaster.pid'), 'utf8')).split('\n');
    return {
      pid: Number(lines[0]),
      address: { socketDir: lines[4] || null, port: Number(lines[3]) },
      isReady: lines[7]?.trim() === 'ready',
    };
  } catch {
    return null;
  }
}

/** A port of 127.0.0.1 that was free a moment ago. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('No port to be had.');
  return address.port;
}
