import { readFile, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from '../../start-error.ts';
import type { ServerAddress } from './address.ts';
import { findFreePort, readPostmasterFile, startCluster } from './cluster.ts';
import { endEarlierServer, isEarlier } from './earlier-server.ts';
import { describeMajor, majors, type Major } from './majors.ts';
import { adoptPostmaster, findPostmaster } from './postmaster.ts';
import { ProgramError, runProgram, type Programs } from './programs.ts';
import { embeddedSettings } from './settings.ts';
import { makeSocketDir, removeSocketDir, renewSocketDir, socketPort } from './socket-dir.ts';
import { stopCluster } from './stop-cluster.ts';

export type Launch = { programs: Programs; clusterDir: string; dataDir: string };

const adoptTimeoutMs = 60_000;
/** Long enough for a recovery after a crash in the middle of heavy writing. */
const startTimeoutSeconds = 120;
const maxLogBytes = 10 * 2 ** 20;

/**
 * Takes over the server that an earlier process left running, or starts one; gives its address.
 * `wanted` is kept where clients already know it.
 */
export async function launch(
  prepared: Launch,
  wanted?: ServerAddress,
): Promise<{ address: ServerAddress; adopted: boolean }> {
  for (let attempt = 1; ; attempt += 1) {
    const left = await readPostmasterFile(prepared.clusterDir);
    const adopted = await adopt(prepared);
    if (adopted) return { address: adopted, adopted: true };
    if (left && !wanted) await removeAddress(prepared, left.address);
    const address = wanted ?? (await makeAddress(prepared));
    try {
      await start(prepared, address);
      return { address, adopted: false };
    } catch (error) {
      if (!wanted) await removeAddress(prepared, address);
      if (!(error instanceof ProgramError)) throw error;
      const said = await readLogEnd(prepared.clusterDir);
      if (attempt < 20 && isPassing(said)) await delay(500);
      else
        throw new StartError([`The database in ${prepared.clusterDir} does not start:`, said], {
          cause: error,
        });
    }
  }
}

async function adopt(prepared: Launch): Promise<ServerAddress | null> {
  const { programs, clusterDir } = prepared;
  if (!(await findPostmaster(clusterDir))) return null;
  const address = await adoptPostmaster(clusterDir, programs.owner, adoptTimeoutMs);
  if (address !== null && !isEarlier(address)) return address;
  if (address !== null) await endEarlierServer(prepared, address);
  // It may have ended meanwhile; if it runs and does not answer, it is replaced.
  else if (await findPostmaster(clusterDir))
    await stopCluster(programs, clusterDir, 'immediate', 10);
  return null;
}

async function start({ programs, clusterDir }: Launch, address: ServerAddress): Promise<void> {
  if (address.socketDir !== null) await renewSocketDir(address.socketDir, programs.owner);
  await trimLog(clusterDir);
  const settings = embeddedSettings();
  const timeoutSeconds = startTimeoutSeconds;
  await startCluster(programs, clusterDir, { settings, address, timeoutSeconds });
}

/** An address of its own for a new server: beside its files if that will do. */
export async function makeAddress({
  programs,
  clusterDir,
}: Pick<Launch, 'programs' | 'clusterDir'>): Promise<ServerAddress> {
  if (process.platform === 'win32') return { socketDir: null, port: await findFreePort() };
  const bases = [dirname(clusterDir), tmpdir(), '/tmp'];
  return { socketDir: await makeSocketDir(bases, programs.owner), port: socketPort };
}

/** Gives the address back of a server that has ended. */
export async function removeAddress(
  { programs }: Pick<Launch, 'programs'>,
  { socketDir }: ServerAddress,
): Promise<void> {
  if (socketDir !== null) await removeSocketDir(socketDir, programs.owner);
}

/** Throws when the cluster was written by another major version than the programs'; says who opens it. */
export async function checkVersion(
  { programs, clusterDir }: Omit<Launch, 'dataDir'>,
  known: readonly Major[] = majors,
): Promise<void> {
  const written = (await readFile(join(clusterDir, 'PG_VERSION'), 'utf8')).trim();
  const brought = /(\d+)/.exec(await runProgram(programs, 'postgres', ['--version']))?.[1];
  if (written !== brought)
    throw new StartError(
      `The database in ${clusterDir} was written by PostgreSQL ${written}, and this version brings ${brought}: ${describeMajor(written, known)}`,
    );
}

/** The port is still taken, a server is ending, or shared memory of a killed one is not released. */
function isPassing(said: string): boolean {
  return /could not bind|Address already in use|already exists|still in use/i.test(said);
}

async function readLogEnd(clusterDir: string): Promise<string> {
  const text = await readFile(join(clusterDir, 'start.log'), 'utf8').catch(() => '');
  return text.trim().split('\n').slice(-5).join('\n');
}

async function trimLog(clusterDir: string): Promise<void> {
  const file = join(clusterDir, 'start.log');
  const found = await stat(file).catch(() => null);
  if (found && found.size > maxLogBytes) await truncate(file);
}
