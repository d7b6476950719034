import { describe, it } from 'vitest';
import { findTimescaleBinDir } from '../support/cluster.ts';
import { names } from './noisy/bounds.ts';
import { expectHeld } from './noisy/hold.ts';
import type { NoisyKind } from './noisy/kind.ts';
import { kinds } from './noisy/kinds.ts';
import { tenSecondKinds } from './noisy/ten-second-kinds.ts';
import { createTurns } from './noisy/turns.ts';

/** `TEST_LONG=full`: as long as the oracle does it, one after the other, which takes an hour; else some seconds of each. */
const isFull = process.env['TEST_LONG'] === 'full';
const run = isFull
  ? { seconds: 30, devices: 200, rate: 500, timescaledb: findTimescaleBinDir() !== null }
  : { seconds: 3, devices: 100, rate: 300, timescaledb: false };
const tenSeconds = { seconds: 10, devices: 100, rate: 300, timescaledb: false };
// A machine that is busy with others says nothing of times: the oracle holds those. What must
// hold on any: nothing is lost, nobody is refused or left without an answer, memory and tables stay bounded.
const leniency = { time: isFull ? 2 : Number.POSITIVE_INFINITY, memory: 1 };

/** Bounds that are known not to hold, each with what it comes from. */
const notHeld: Record<string, string> = {
  // Compiled profiles are remembered up to a quarter of the heap, which may be a gigabyte.
  'big-profiles': names.memory,
  // Events count when they are committed: messages that were read before record their ten thousand each.
  'event-amplification': names.tables,
  // Evidence that a quota would refuse today is written again with each commit; a vacuum makes it room again.
  evidence: names.tables,
  // In 30 s by a quarter more than what the quotas let in takes.
  alarms: names.tables,
  // How far each of a thousand roll-outs came on each of a thousand devices is kept.
  'profile-churn': names.tables,
};

/** Of the bursts of each packet and frame there are, those that differ most; all of them only where there is time. */
const fewBursts = ['bursts-publish-1', 'bursts-stranger-pingreq', 'bursts-websocket-ping'];
const hasTime = ({ name }: NoisyKind) =>
  isFull || !name.startsWith('bursts-') || fewBursts.includes(name);

const few = kinds.filter(({ name }) => tenSecondKinds.includes(name));
const others = kinds.filter((kind) => !few.includes(kind) && hasTime(kind));

// Half of a kind is to start, to settle and to judge: beside another, while only one is measured.
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
