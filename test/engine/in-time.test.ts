import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Evaluated, Firing } from '../../src/engine/compile.ts';
import { happenings, listening, purposesInTime, startTs } from './arbitraries-in-time.ts';
import { compareEngines } from './compare-engines.ts';
import { EvaluatorEngine, startReference } from './engines.ts';
import { isSomething } from './observed.ts';
import { answer, callsOf } from './play.ts';
import { runs } from '../support/share.ts';

test('time members: firings, moves, ended episodes and due times equal those of the reference engine', () => {
  fc.assert(fc.property(purposesInTime, happenings, listening, compareEngines), {
    numRuns: runs(600),
  });
});

test('ticks may run early, late or in parts without changing the result', () => {
  fc.assert(
    fc.property(purposesInTime, happenings, listening, (purposes, stream, gaps) => {
      const late = stream.map((it) => ({ ...it, ticksEarly: false }));
      const [one, other] = [stream, late].map((each) => {
        const engine = startReference(purposes, startTs);
        return callsOf(purposes, each, gaps).flatMap((call) => {
          const { ticks, measured } = answer(engine, call);
          return [...ticks, ...measured];
        });
      });
      expect(one).toEqual(other);
    }),
    { numRuns: runs(300) },
  );
});

test('silent firings are omitted unless requested, and nothing else is', () => {
  const isSeen = ({ record, tells }: Firing) => record || tells !== 'nobody';
  const seen = (all: Evaluated[]) =>
    all
      .map((outcome) => ({ ...outcome, firings: outcome.firings.filter(isSeen) }))
      .filter((outcome) => isSomething(outcome));
  fc.assert(
    fc.property(purposesInTime, happenings, listening, (purposes, stream, gaps) => {
      const all = new EvaluatorEngine(purposes, startTs);
      const some = new EvaluatorEngine(purposes, startTs, { givesAll: false });
      for (const call of callsOf(purposes, stream, gaps)) {
        const { measured, ticks, ...rest } = answer(all, call);
        const left = answer(some, call);
        expect({ ...left, ticks: seen(left.ticks) }).toEqual({
          measured: seen(measured),
          ticks: seen(ticks),
          ...rest,
        });
      }
      expect(some.runtime).toStrictEqual(all.runtime);
    }),
    { numRuns: runs(200) },
  );
});

test('the generated streams also cause ticks that fire and move; otherwise the rest would prove little', () => {
  const arbitrary = fc.tuple(purposesInTime, happenings, listening);
  const seen = { forced: 0, due: 0, measured: 0, moves: 0, ended: 0, held: 0, silent: 0, late: 0 };
  for (const [purposes, stream, gaps] of fc.sample(arbitrary, { numRuns: 300, seed: 7 })) {
    const engine = startReference(purposes, startTs);
    for (const call of callsOf(purposes, stream, gaps)) {
      const { ticks, measured } = answer(engine, call);
      const all = [...ticks, ...measured];
      const firings = all.flatMap((outcome) => outcome.firings);
      const why = firings.flatMap(({ event }) => event.why ?? []);
      seen[call.kind === 'ticks' ? 'due' : 'forced'] += ticks.length;
      seen.measured += measured.length;
      seen.moves += all.filter(({ transition }) => transition).length;
      seen.ended += all.flatMap(({ ended }) => ended).length;
      seen.held += why.filter(({ heldMs }) => heldMs !== undefined).length;
      seen.silent += why.filter(({ silentMs }) => silentMs !== undefined).length;
      seen.late += firings.filter(({ isFirst }) => !isFirst).length;
    }
  }
  for (const [what, count] of Object.entries(seen)) {
    expect({ what, isOften: count > 50 }).toEqual({ what, isOften: true });
  }
});
