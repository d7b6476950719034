import type { Fault, Observations, Severity } from './fault.ts';
import { judge } from './verdict.ts';
import type { Verdict } from './verdict.ts';
import { startWorld } from './world.ts';
import type { WorldOptions } from './world.ts';

export type Outcome = { fault: string; verdict: Verdict; observations: Observations };

/** How long the load may take to have everything acknowledged once the fault is over. */
const drainMs = 60_000;

/** One fault on a world of its own: load, fault, drain, judgement. */
export async function runFault(
  fault: Fault,
  severity: Severity,
  options: WorldOptions,
): Promise<Outcome> {
  const world = await startWorld({ ...options, ...fault.world });
  try {
    const observations = await fault.inflict(world, severity);
    const since = performance.now();
    const drained = await world.load.stop(drainMs);
    const drainedMs = Math.round(performance.now() - since);
    const verdict = await judge(world);
    if (!drained)
      throw new Error(`Not everything was acknowledged ${drainMs} ms after ${fault.name}.`);
    return { fault: fault.name, verdict, observations: { ...observations, drainedMs } };
  } finally {
    await world.close();
  }
}
