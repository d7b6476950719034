import { setTimeout as delay } from 'node:timers/promises';
import { formatNumber, type Metrics } from '../rounds.ts';
import type { PairsOptions } from './options.ts';

export type SideName = 'before' | 'after';

/** One of two services that are measured in turns. It idles while the other is measured. */
export type Side = {
  /** Measures for a while, after `warmupSeconds` of the same load that are not measured. */
  turn: (seconds: number, warmupSeconds: number) => Promise<Metrics>;
  /** Throws if the stored data differ from what was acknowledged. */
  check: () => Promise<void>;
};

/** What both measured right after one another, and which was first. */
export type Pair = Record<SideName, Metrics> & { first: SideName };

/** Measures this many pairs, in random order within each, so that neither side is always second. */
export async function alternate(
  sides: Record<SideName, Side>,
  options: PairsOptions,
  tell: (line: string) => void,
): Promise<Pair[]> {
  const draw = createDraw(options.seed);
  for (const side of Object.values(sides))
    await side.turn(options.warmupSeconds, options.warmupSeconds);
  const pairs: Pair[] = [];
  const turn = async (name: SideName) => {
    await delay(options.settleSeconds * 1_000);
    return sides[name].turn(options.seconds, options.rampSeconds);
  };
  while (pairs.length < options.pairs) {
    const first = draw() < 0.5 ? 'before' : 'after';
    const second = first === 'before' ? 'after' : 'before';
    const measured = { first, [first]: await turn(first), [second]: await turn(second) } as Pair;
    pairs.push(measured);
    tell(`  ${pairs.length}/${options.pairs} ${describe(measured)}`);
  }
  for (const side of Object.values(sides)) await side.check();
  return pairs;
}

function describe({ before, after }: Pair): string {
  return Object.keys(before)
    .map(
      (name) => `${name} ${[before, after].map((m) => formatNumber(m[name] ?? NaN)).join(' → ')}`,
    )
    .join(', ');
}

/** Numbers from 0 to below 1, the same for the same seed (a linear congruential generator modulo 2³¹ - 1). */
function createDraw(seed: number): () => number {
  let state = (Math.abs(Math.trunc(seed)) % 2_147_483_646) + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
