import { Device, ledBy } from '../../../src/cli/engine/play.ts';
import type { Translated } from '../../../src/cli/import-rules/translate.ts';
import { Purpose } from '../../../src/contract/purpose.ts';
import type { Evaluated } from '../../../src/engine/compile.ts';
import type { Done, Sent } from './interpreter.ts';

/** Plays the messages to our engine, with the purpose of a model: each value as a measurement of its sense. */
export function playPurpose({ purpose, senses }: Translated, sent: Sent[], untilMs: number): Done {
  const written = Purpose.parse(purpose);
  const done: Done = { moves: [], published: [] };
  const [first] = sent;
  if (!first) return done;
  const device = new Device([written], first.atMs);
  const take = (evaluated: Evaluated, atMs: number) => {
    const { fires, moves } = ledBy(evaluated);
    const to = written.states.find(({ stId }) => stId === moves?.stId)?.name;
    if (to !== undefined) done.moves.push({ atMs, to });
    done.published.push(...fires.filter(({ tells }) => tells === 'notice').map(() => atMs));
  };
  const runUntil = (atMs: number) => {
    for (const tick of device.ticksUntil(atMs)) take(tick, tick.arrivedTs);
  };
  for (const { atMs, input, payload } of sent) {
    runUntil(atMs);
    const measured = senses
      .filter(({ value }) => value.input === input)
      .map(({ sId, value, texts, isFlag }) => {
        const found = value.path
          .split('.')
          .reduce<unknown>(
            (of, name) => (of as Record<string, unknown> | undefined)?.[name],
            payload,
          );
        const text = texts && texts.indexOf(String(found)) + 1;
        const val = text ?? (isFlag ? Number(found) : value.path === '' ? 1 : Number(found));
        return { sId, val, ts: atMs };
      });
    const { measured: all } = device.measure(measured, atMs);
    for (const { forced, outcome } of all) {
      for (const tick of forced) take(tick, atMs);
      if (outcome) take(outcome, atMs);
    }
  }
  runUntil(untilMs);
  return done;
}
