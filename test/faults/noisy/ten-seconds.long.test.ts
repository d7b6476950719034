import { afterAll, describe, it } from 'vitest';
import { expectHeld } from './hold.ts';
import { kinds } from './kinds.ts';
import { shortKinds } from './short-kinds.ts';
import { createWorldsAhead } from './worlds-ahead.ts';

const run = { seconds: 10, devices: 100, rate: 300, timescaledb: false };
// CI machines are busy with others. The oracle holds the figures themselves.
const leniency = { time: 10, memory: 1 };

const short = kinds.filter(({ name }) => shortKinds.includes(name));

describe('a noisy neighbour, for ten seconds', () => {
  const ahead = createWorldsAhead(short, run);
  afterAll(() => ahead.close());

  for (const kind of short) {
    it(`${kind.name}: ${kind.says}`, { timeout: 180_000, retry: 1 }, () =>
      expectHeld(kind.name, run, leniency, { fresh: ahead.take(kind) }),
    );
  }
});
