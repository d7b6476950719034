import { readFileSync, readdirSync } from 'node:fs';

/** /proc counts in ticks of 10 ms (USER_HZ is 100 on every Linux that Node runs on). */
const msPerTick = 10;

type Process = { pid: number; parent: number; cpuMs: number };

/** CPU time in ms of a process and all its descendants, including those that it has reaped. */
export function cpuMsOf(pid: number): number {
  const all = listProcesses();
  const family = new Set([pid]);
  // Parents have lower pids than children unless pids wrapped, so a second pass finds the rest.
  for (let look = 0; look < 2; look += 1)
    for (const each of all) if (family.has(each.parent)) family.add(each.pid);
  return all.reduce((sum, each) => sum + (family.has(each.pid) ? each.cpuMs : 0), 0);
}

function listProcesses(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(readProcess)
    .filter((each) => each !== null)
    .toSorted((a, b) => a.pid - b.pid);
}

/** See proc_pid_stat(5). The program's name may contain spaces and brackets: fields start after it. */
function readProcess(name: string): Process | null {
  try {
    const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const ticks = fields.slice(11, 15).reduce((sum, each) => sum + each, 0);
    return { pid: Number(name), parent: fields[1] ?? 0, cpuMs: ticks * msPerTick };
  } catch {
    // It ended after it was listed.
    return null;
  }
}
