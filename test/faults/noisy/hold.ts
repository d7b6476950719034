import { expect } from 'vitest';
import { faultsOf, noFaults } from '../verdict.ts';
import { brokenBounds, names } from './bounds.ts';
import type { Leniency } from './bounds.ts';
import { getKind } from './kinds.ts';
import { runNoisy } from './run-noisy.ts';
import type { NoisyRun } from './run-noisy.ts';

/** The p99 of acknowledgements without noise on a machine of two cores that does nothing else, ms. */
const usualQuietMs = 30;
/** However slow the machine is: a service that became slow by itself must not be allowed for. */
const mostSlowness = 5;

/** Runs a kind, and expects that everything acknowledged is stored and that the bounds hold, but for `notHeld`. */
export async function expectHeld(
  name: string,
  run: NoisyRun,
  leniency: Leniency,
  notHeld?: string,
): Promise<void> {
  const reports: string[] = [];
  const onReport = (report: string) => void reports.push(report);
  const { verdict, observations } = await runNoisy(getKind(name), { ...run, onReport });
  expect(faultsOf(verdict)).toEqual(noFaults);
  expect(verdict.acknowledged).toBeGreaterThan(0);
  // Worlds that start meanwhile, and other tenants of the machine, slow all of it down, the quiet phase too.
  const quietAckMs = observations[names.quietAck] ?? 0;
  const slowness = Math.min(mostSlowness, Math.max(1, quietAckMs / usualQuietMs));
  const allowed = { ...leniency, time: leniency.time * slowness };
  const broken = brokenBounds(observations, allowed).filter(
    (bound) => notHeld === undefined || !bound.startsWith(`${notHeld}:`),
  );
  // With all that was seen, so that a failure in CI says enough.
  expect(broken, JSON.stringify({ observations, reports })).toEqual([]);
}
