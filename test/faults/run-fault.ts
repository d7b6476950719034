import { expectHolds } from './fault.ts';
import type { Fault, Observations, Severity } from './fault.ts';
import { judge } from './verdict.ts';
import type { Verdict } from './verdict.ts';
import type { World } from './world.ts';

export type Outcome = { fault: string; verdict: Verdict; observations: Observations };

/** After the fault everything must be acknowledged within this time. */
const drainMs = 60_000;

/** One fault under load, then a drain, then the verdict on everything sent so far. */
export async function runFault(world: World, fault: Fault, severity: Severity): Promise<Outcome> {
  if (fault.losesOutcomes) world.load.receipts.loseOutcomes();
  world.load.start();
  const observations = await fault.inflict(world, severity);
  const since = performance.now();
  const drained = await world.load.stop(drainMs);
  const drainedMs = Math.round(performance.now() - since);
  const verdict = await judge(world);
  if (!drained) {
    const late = `Not everything was acknowledged ${drainMs} ms after it was over`;
    throw new Error(`${late}: ${JSON.stringify(verdict)}.`);
  }
  if (fault.sparesDeliveries)
    expectHolds(
      verdict.toldAgain === 0,
      `each message is delivered once, ${verdict.toldAgain} more`,
    );
  return { fault: fault.name, verdict, observations: { ...observations, drainedMs } };
}
