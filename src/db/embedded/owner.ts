import { execFileSync } from 'node:child_process';
import type { SystemUser } from './programs.ts';

/** The user made for the database on a machine that has no `postgres` of its own. */
const createdUser = 'sensorium';

/** Who is to run PostgreSQL: null (this user) unless this is root, which PostgreSQL refuses. */
export function findOwner(): SystemUser | null {
  if (process.getuid?.() !== 0) return null;
  return lookUp('postgres') ?? lookUp(createdUser) ?? createUser() ?? lookUp('nobody');
}

function createUser(): SystemUser | null {
  try {
    execFileSync(
      'useradd',
      ['--system', '--no-create-home', '--shell', '/bin/false', createdUser],
      {
        stdio: 'ignore',
      },
    );
  } catch {
    return null;
  }
  return lookUp(createdUser);
}

function lookUp(name: string): SystemUser | null {
  try {
    return { name, uid: askId('-u', name), gid: askId('-g', name) };
  } catch {
    return null;
  }
}

function askId(what: '-u' | '-g', name: string): number {
  return Number(execFileSync('id', [what, name], { stdio: ['ignore', 'pipe', 'ignore'] }));
}
