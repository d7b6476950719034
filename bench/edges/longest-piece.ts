import { yieldToEventLoop } from '../../src/lib/event-loop.ts';

/** Set SAMPLES in the environment to fewer for a quick look. */
const samples = Number(process.env['SAMPLES'] ?? 50);
const warmUps = 15;

/** Processor time of this thread in ms. Without the call before it, it moves in steps of 4 ms. */
function threadMs(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/**
 * The most processor time between two returns to the event loop while `work` runs, in ms. Promises and `nextTick` are
 * part of a piece. Garbage is collected before, so that as little as possible is collected during it.
 */
export async function longestPieceMs(work: () => unknown): Promise<number> {
  globalThis.gc?.();
  await yieldToEventLoop();
  let isDone = false;
  let longest = 0;
  const startedMs = threadMs();
  const outcome = Promise.resolve(work()).finally(() => (isDone = true));
  for (let sinceMs = startedMs; ;) {
    await yieldToEventLoop();
    const monotonicMs = threadMs();
    longest = Math.max(longest, monotonicMs - sinceMs);
    if (isDone) break;
    sinceMs = monotonicMs;
  }
  await outcome;
  return longest;
}

/** The median of 50 warm runs, or of fewer if a run leaves much behind. */
export async function medianPieceMs(work: () => unknown, runs = samples): Promise<number> {
  for (let n = 0; n < Math.min(warmUps, runs); n += 1) await work();
  const measured: number[] = [];
  for (let n = 0; n < runs; n += 1) measured.push(await longestPieceMs(work));
  measured.sort((a, b) => a - b);
  return measured[Math.floor(runs / 2)] as number;
}
