import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ProgramError, runProgram, type SystemUser, type Programs } from './programs.ts';

/** Where things go that PostgreSQL's user must reach, when the project lies where it cannot. */
export const sharedDir = '/var/lib/sensorium';

/**
 * The programs where their user can run them: as npm put them, or else (a project below /root, say)
 * a copy. `moved` says that it is a copy.
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
    // Not allowed there, or not allowed to read its libraries: a copy solves both.
    if (error instanceof ProgramError) return false;
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}

/** Under another name first: a copy that was interrupted is never taken for a whole one. */
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
