import { expect } from 'vitest';
import type { Purpose } from '../../src/contract/purpose.ts';
import { startTs, type Happening } from './arbitraries-in-time.ts';
import { startEvaluator, startReference } from './engines.ts';
import { answer, callsOf } from './play.ts';
import type { Gap } from './reference/due.ts';

/** Asks both engines the same: what fires, moves and ends, where the device stands, and what is due next. */
export function compareEngines(purposes: Purpose[], stream: Happening[], gaps: Gap[]): void {
  const reference = startReference(purposes, startTs, gaps);
  const evaluator = startEvaluator(purposes, startTs, gaps);
  for (const [index, call] of callsOf(purposes, stream).entries()) {
    const expected = answer(reference, call);
    expect({ index, call, ...answer(evaluator, call) }).toEqual({ index, call, ...expected });
  }
}
