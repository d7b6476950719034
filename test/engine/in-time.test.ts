import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Purpose } from '../../src/contract/purpose.ts';
import {
  gaps,
  happenings,
  purposesInTime,
  startTs,
  type Happening,
} from './arbitraries-in-time.ts';
import { startEvaluator, startReference } from './engines.ts';
import { answer, callsOf } from './play.ts';
import type { Gap } from './reference/due.ts';

/** How many random pairs of purposes and streams: more with ENGINE_PAIRS. */
const numRuns = Number(process.env['ENGINE_PAIRS'] ?? 1_500);

function compare(purposes: Purpose[], stream: Happening[], listening: Gap[]): void {
  const reference = startReference(purposes, startTs, listening);
  const evaluator = startEvaluator(purposes, startTs, listening);
  for (const [index, call] of callsOf(purposes, stream).entries()) {
    const expected = answer(reference, call);
    expect({ index, call, ...answer(evaluator, call) }).toEqual({ index, call, ...expected });
  }
}

test('members of time: what fires, moves, ends and is due is what the plainest engine gives', () => {
  fc.assert(fc.property(purposesInTime, happenings, gaps, compare), { numRuns });
});

test('when ticks run, early, late or in parts, changes nothing', () => {
  fc.assert(
    fc.property(purposesInTime, happenings, gaps, (purposes, stream, listening) => {
      const whole = startReference(purposes, startTs, listening);
      const parts = startReference(purposes, startTs, listening);
      const calls = callsOf(purposes, stream);
      const few = callsOf(
        purposes,
        stream.map((it) => ({ ...it, ticksEarly: false })),
      );
      const led = (engine: typeof whole, asked: typeof calls) =>
        asked.flatMap((call) => answer(engine, call).led);
      expect(led(parts, calls)).toEqual(led(whole, few));
    }),
    { numRuns: Math.min(numRuns, 300) },
  );
});

test('what is generated fires by ticks, moves, ends episodes, or the rest would prove little', () => {
  const samples = fc.sample(fc.tuple(purposesInTime, happenings, gaps), { numRuns: 300, seed: 7 });
  const seen = {
    byMeasurement: 0,
    byTick: 0,
    forced: 0,
    moves: 0,
    ended: 0,
    again: 0,
    held: 0,
    silent: 0,
  };
  for (const [purposes, stream, listening] of samples) {
    const engine = startReference(purposes, startTs, listening);
    for (const call of callsOf(purposes, stream)) {
      for (const { firings, transition, ended } of answer(engine, call).led) {
        const why = firings.flatMap(({ event }) => event.why ?? []);
        seen[call.kind === 'ticks' ? 'byTick' : 'byMeasurement'] += firings.length;
        if (transition) seen.moves++;
        seen.ended += ended.length;
        seen.again += firings.filter(({ isFirst }) => !isFirst).length;
        seen.held += why.filter(({ heldMs }) => heldMs !== undefined).length;
        seen.silent += why.filter(({ silentMs }) => silentMs !== undefined).length;
      }
    }
  }
  console.log(seen);
});
