import { expect } from 'vitest';
import { faultsOf, noFaults } from '../verdict.ts';
import { brokenBounds } from './bounds.ts';
import type { Leniency } from './bounds.ts';
import { getKind } from './kinds.ts';
import { runNoisy } from './run-noisy.ts';
import type { NoisyRun } from './run-noisy.ts';

/** Runs a kind, and expects that everything acknowledged is stored and that the bounds hold, except `notHeld`. */
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
  const broken = brokenBounds(observations, leniency).filter(
    (bound) => notHeld === undefined || !bound.startsWith(`${notHeld}:`),
  );
  // With all figures, so that a failure in CI says enough.
  expect(broken, JSON.stringify({ observations, reports })).toEqual([]);
}
