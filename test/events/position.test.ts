import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  advance,
  parsePosition,
  writePosition,
  type StreamPosition,
} from '../../src/streams/position.ts';

/** Transactions 1..n, each of them open or committed at an earlier and at a later moment. */
const history = fc
  .array(fc.constantFrom('before', 'between', 'open', 'future'), { minLength: 1, maxLength: 12 })
  .map((states) => {
    // Transactions that had not begun at the later moment have the highest numbers.
    const sorted = [
      ...states.filter((s) => s !== 'future'),
      ...states.filter((s) => s === 'future'),
    ];
    return sorted.map((state, i) => ({ xact: BigInt(i + 1), state }));
  });

function snapshotOf(open: bigint[], xmax: bigint): StreamPosition {
  const sorted = open.filter((x) => x < xmax);
  return { ts: 5, server: 'a1', snapshot: `${sorted[0] ?? xmax}:${xmax}:${sorted.join(',')}` };
}

function sees({ snapshot }: StreamPosition, xact: bigint): boolean {
  const [, xmax = '', open = ''] = snapshot.split(':');
  return xact < BigInt(xmax) && !open.split(',').includes(String(xact));
}

describe('a position', () => {
  test('between two others sees what was sent on the way, and nothing else', () => {
    fc.assert(
      fc.property(history, fc.nat(), fc.nat(), (all, cut, begun) => {
        const known = all.filter(({ state }) => state !== 'future');
        const firstMax = BigInt(1 + (begun % (known.length + 1)));
        const states = known.map(({ xact, state }) => ({
          xact,
          // What had not begun at the earlier moment cannot have been committed then.
          state: state === 'before' && xact >= firstMax ? 'between' : state,
        }));
        const notBefore = states.filter((s) => s.state !== 'before').map((s) => s.xact);
        const open = states.filter((s) => s.state === 'open').map((s) => s.xact);
        const from = snapshotOf(notBefore, firstMax);
        const to = snapshotOf(open, BigInt(known.length + 1));
        const sent = states.filter((s) => s.state === 'between');
        const last = sent[cut % Math.max(1, sent.length)];
        if (!last) return;
        const reached = advance(from, to, String(last.xact));
        expect(parsePosition(writePosition(reached))).toEqual(reached);
        for (const { xact, state } of states) {
          const expected = state === 'before' || (state === 'between' && xact <= last.xact);
          expect([xact, sees(reached, xact)]).toEqual([xact, expected]);
        }
        expect(sees(reached, BigInt(known.length + 1))).toBe(false);
      }),
      { numRuns: 500 },
    );
  });
});
