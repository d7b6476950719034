import type { EventName } from '../../../src/contract/event.ts';
import type { Purpose } from '../../../src/contract/purpose.ts';
import type { Place } from '../../../src/contract/values.ts';
import type { Evaluated } from '../../../src/engine/compile.ts';
import type { WitnessStep } from '../../../src/contract/warnings.ts';
import { ReferenceEngine } from '../reference/engine.ts';

/** What a stream leads to in the reference engine. */
export type Replayed = {
  fired: EventName[];
  ended: EventName[];
  reached: Place[];
  left: Place[];
};

/** Plays the steps of a witness. All outcomes are those of the last step. */
export function replay(purposes: readonly Purpose[], steps: readonly WitnessStep[]): Replayed {
  const engine = new ReferenceEngine([...purposes], 0);
  let nowTs = 0;
  let last: Evaluated[] = [];
  let before = engine.place;
  for (const { afterMs, sId, val, times = 1 } of steps) {
    for (let count = 0; count < times; count++) {
      nowTs += afterMs;
      before = engine.place;
      last = engine.ticksUntil(nowTs);
      if (sId === undefined || val === undefined) continue;
      const moment = { t: nowTs, arrivedTs: nowTs };
      last.push(...engine.ticksForcedBy(sId, moment));
      last.push(engine.measure({ sId, val, ts: nowTs }, moment));
    }
  }
  const moves = last.flatMap(({ transition }) => transition?.to ?? []);
  return {
    fired: last.flatMap(({ firings }) => firings.map(({ event }) => nameOf(event.cause.engine))),
    ended: last.flatMap(({ ended }) => ended),
    reached: steps.length === 0 ? [engine.place] : moves,
    left: [before, ...moves].filter((place, index) => {
      const next = moves[index];
      return next && (next.puId !== place.puId || next.stId !== place.stId);
    }),
  };
}

const nameOf = ({ puId, stId, evId }: EventName): EventName => ({ puId, stId, evId });
