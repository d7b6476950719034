import { readFile, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from '../../start-error.ts';
import { findFreePort, startCluster, stopCluster } from './cluster.ts';
import { describeMajor, majors, type Major } from './majors.ts';
import { adoptPostmaster, findPostmaster } from './postmaster.ts';
import { ProgramError, runProgram, type Programs } from './programs.ts';
import { embeddedSettings } from './settings.ts';

export type Launch = { programs: Programs; clusterDir: string; password: string };

const adoptTimeoutMs = 60_000;
/** Long enough for a recovery after a crash in the middle of heavy writing. */
const startTimeoutSeconds = 120;
const maxLogBytes = 10 * 2 ** 20;

/**
 * Takes over the server that an earlier process left running, or starts one; gives its port.
 * `wantedPort` is kept where clients already know it.
 */
export async function launch(
  { programs, clusterDir, password }: Launch,
  wantedPort?: number,
): Promise<{ port: number; adopted: boolean }> {
  for (let attempt = 1; ; attempt += 1) {
    if (await findPostmaster(clusterDir)) {
      const port = await adoptPostmaster(clusterDir, password, adoptTimeoutMs);
      if (port !== null) return { port, adopted: true };
      // It may have ended meanwhile; if it is there and deaf, it is replaced.
      if (await findPostmaster(clusterDir))
        await stopCluster(programs, clusterDir, 'immediate', 10);
    }
    const port = wantedPort ?? (await findFreePort());
    try {
      await trimLog(clusterDir);
      const settings = embeddedSettings();
      await startCluster(programs, clusterDir, {
        settings,
        port,
        timeoutSeconds: startTimeoutSeconds,
      });
      return { port, adopted: false };
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error;
      const said = await readLogEnd(clusterDir);
      if (attempt < 20 && isPassing(said)) await delay(500);
      else
        throw new StartError([`The database in ${clusterDir} does not start:`, said], {
          cause: error,
        });
    }
  }
}

/** Throws when the cluster was written by another major version than the programs'; says who opens it. */
export async function checkVersion(
  { programs, clusterDir }: Omit<Launch, 'password'>,
  known: readonly Major[] = majors,
): Promise<void> {
  const written = (await readFile(join(clusterDir, 'PG_VERSION'), 'utf8')).trim();
  const brought = /(\d+)/.exec(await runProgram(programs, 'postgres', ['--version']))?.[1];
  if (written !== brought)
    throw new StartError(
      `The database in ${clusterDir} was written by PostgreSQL ${written}, and this version brings ${brought}: ${describeMajor(written, known)}`,
    );
}

/** A port taken a moment too early, a server ending, memory of a killed one not yet released. */
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
