import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Log } from '../log/logger.ts';
import { PageManifest, manifestName } from './manifest.ts';

/** The page: being built, there in `dir`, or not to be had, with the log saying why. */
export type Built =
  | { state: 'building' | 'failed' }
  | { state: 'ready'; dir: string; files: ReadonlyMap<string, string> };

export type ConsoleBuild = {
  find(): Built;
  /** From now on the log says that it failed: what the service itself could not start for has been said by then. */
  tell(): void;
  /** Ends the build where it still runs, and removes what no later start uses. */
  close(): Promise<void>;
};

const program = fileURLToPath(new URL('build/main.ts', import.meta.url));
const timeoutMs = 120_000;

/**
 * Has the page built by a process of its own; nobody waits for it. `cacheDir`: where later starts find it;
 * null: a folder that is never used again, for in a shared one a local user could plant script.
 */
export function startConsoleBuild({
  cacheDir,
  log,
}: {
  cacheDir: string | null;
  log: Pick<Log, 'error'>;
}): ConsoleBuild {
  let built: Built = { state: 'building' };
  let tempDir: string | null = null;
  let isTold = false;
  let failure: { err: unknown } | null = null;
  const write = () => {
    if (isTold && failure && !stopping.signal.aborted)
      log.error(
        { event: 'console.failed', err: failure.err },
        'The console could not be built; everything else is served.',
      );
  };
  const stopping = new AbortController();
  const build = async () => {
    tempDir = cacheDir === null ? await mkdtemp(join(tmpdir(), 'sensorium-console-')) : null;
    const dir = await runProgram(cacheDir ?? tempDir ?? '', stopping.signal);
    const text = await readFile(join(dir, manifestName), 'utf8');
    const { files } = PageManifest.parse(JSON.parse(text));
    built = { state: 'ready', dir, files: new Map(files.map(({ name, type }) => [name, type])) };
  };
  const done = build().catch((err: unknown) => {
    built = { state: 'failed' };
    failure = { err };
    write();
  });
  return {
    find: () => built,
    tell() {
      if (isTold) return;
      isTold = true;
      write();
    },
    async close() {
      stopping.abort();
      await done;
      if (tempDir !== null) await rm(tempDir, { recursive: true, force: true });
    },
  };
}

function runProgram(dir: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const args = [program, '--dir', dir];
    execFile(process.execPath, args, { signal, timeout: timeoutMs }, (error, stdout, stderr) =>
      error ? reject(new Error(stderr.trim() || error.message, { cause: error })) : resolve(stdout),
    );
  });
}
