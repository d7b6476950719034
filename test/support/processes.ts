import { execFileSync } from 'node:child_process';

/** The processes that this one has started and that still run. */
export function childrenOf(pid: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).split('\n');
  const pairs = lines.map((line) => line.trim().split(/\s+/).map(Number));
  return pairs.filter(([, parent]) => parent === pid).map(([child = 0]) => child);
}

/** Whether a process has this number; one that has ended and waits to be asked how does not count. */
export function isRunning(pid: number): boolean {
  try {
    const state = execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
    return !state.startsWith('Z');
  } catch {
    return false;
  }
}
