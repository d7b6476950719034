import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** The child processes of `pid` that are still running. */
export function childrenOf(pid: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).split('\n');
  const pairs = lines.map((line) => line.trim().split(/\s+/).map(Number));
  return pairs.filter(([, parent]) => parent === pid).map(([child = 0]) => child);
}

/** Whether a process with this number is running; a zombie is not. */
export function isRunning(pid: number): boolean {
  try {
    const state = execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
    return !state.startsWith('Z');
  } catch {
    return false;
  }
}

/**
 * Memory in bytes as Linux counts it: resident now (`VmRSS`), or the peak (`VmHWM`); null for a zombie. Throws if
 * there is no such process, and on other systems.
 */
export function memoryOf(pid: number, field: 'VmRSS' | 'VmHWM'): number | null {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) * 1_024;
}
