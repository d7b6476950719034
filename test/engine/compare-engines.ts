import { expect } from 'vitest';
import type { Purpose } from '../../src/contract/purpose.ts';
import { startTs, type Happening } from './arbitraries-in-time.ts';
import { startEvaluator, startReference } from './engines.ts';
import { answer, callsOf } from './play.ts';
import type { Gap } from './reference/due.ts';

/** Asks both engines the same, and compares firings, moves, ended episodes, the place, and the next due time. */
export function compareEngines(purposes: Purpose[], stream: Happening[], gaps: Gap[]): void {
  const reference = startReference(purposes, startTs);
  const evaluator = startEvaluator(purposes, startTs);
  let lasts = false;
  for (const [index, call] of callsOf(purposes, stream, gaps).entries()) {
    if (call.kind === 'ticks') lasts = call.gaps.some(({ toTs }) => toTs === null);
    const [expected, found] = [reference, evaluator].map((engine) => {
      const { nextDueTs, ...rest } = answer(engine, call);
      // While a gap lasts, that is when to look again, not when the tick runs.
      return { index, call, ...rest, next: lasts ? nextDueTs !== null : nextDueTs };
    });
    expect(found).toEqual(expected);
  }
}
