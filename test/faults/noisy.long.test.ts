import { describe, it } from 'vitest';
import { findTimescaleBinDir } from '../support/cluster.ts';
import { names } from './noisy/bounds.ts';
import { expectHeld } from './noisy/hold.ts';
import type { NoisyKind } from './noisy/kind.ts';
import { kinds } from './noisy/kinds.ts';
import { tenSecondKinds } from './noisy/ten-second-kinds.ts';
import { createTurns } from './noisy/turns.ts';

/** `TEST_LONG=full`: as long as in the oracle, one after the other, which takes an hour. Otherwise seconds each. */
const isFull = process.env['TEST_LONG'] === 'full';
const run = isFull
  ? { seconds: 30, devices: 200, rate: 500, timescaledb: findTimescaleBinDir() !== null }
  : { seconds: 3, devices: 100, rate: 300, timescaledb: false };
const tenSeconds = { seconds: 10, devices: 100, rate: 300, timescaledb: false };
// On a busy machine times mean nothing, so only the oracle checks them. What must hold anywhere: nothing is lost,
// nobody is refused or left without an answer, and memory and tables stay bounded.
const leniency = { time: isFull ? 2 : Number.POSITIVE_INFINITY, memory: 1 };

/** Bounds that are known not to hold, each with its cause. */
const notHeld: Record<string, string> = {
  // Compiled profiles are remembered up to a quarter of the heap, which may be a gigabyte.
  'big-profiles': names.memory,
  // Events count when they are committed; messages that were read before that record their ten thousand each.
  'event-amplification': names.tables,
  // Evidence that a quota would refuse today is written again with each commit; a vacuum frees that space.
  evidence: names.tables,
  // In 30 s it takes a quarter more than the quotas allow.
  alarms: names.tables,
  // How far each of a thousand roll-outs came is kept for each of a thousand devices.
  'profile-churn': names.tables,
};

/** The most different of the bursts of each packet and frame. All of them run only with `TEST_LONG=full`. */
const fewBursts = ['bursts-publish-1', 'bursts-stranger-pingreq', 'bursts-websocket-ping'];
const hasTime = ({ name }: NoisyKind) =>
  isFull || !name.startsWith('bursts-') || fewBursts.includes(name);

const few = kinds.filter(({ name }) => tenSecondKinds.includes(name));
const others = kinds.filter((kind) => !few.includes(kind) && hasTime(kind));

// Half of a kind's time is starting, settling and judging. That may overlap, but only one is measured at a time.
const turn = createTurns();
// Three at a time: `maxConcurrency` in vitest.long.config.ts.
describe('a noisy neighbour, for ten seconds', { concurrent: true }, () => {
  for (const { name, says } of few)
    it(`${name}: ${says}`, { timeout: 300_000, retry: 1 }, () =>
      expectHeld(name, { ...tenSeconds, turn }, leniency),
    );
});

describe('a noisy neighbour, of every other kind', { concurrent: !isFull }, () => {
  for (const { name, says } of others)
    it(`${name}: ${says}`, { timeout: 600_000, retry: 1 }, () =>
      expectHeld(name, { ...run, turn }, leniency, notHeld[name]),
    );
});
