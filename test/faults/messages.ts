import { Purpose } from '../../src/core/purpose.ts';

/** The sense that every device of the load reports. */
export const sId = '0x01';

export const configuration = {
  device: { name: 'witness' },
  module: [{ moduleId: 'm', senses: [{ sId, min: 0, max: 10_000_000 }, { sId: '0x02' }] }],
};

/** Message `seq` of any device: a value that says which one it is, a millisecond after the one before. */
export const measurementOf = (startTs: number, seq: number) => ({
  sId,
  val: seq,
  ts: startTs + seq,
});

/**
 * Counts, so that a measurement evaluated twice, or not at all, moves every event after it; and
 * changes its state, so that the order matters.
 */
export const witnessPurpose: Purpose = Purpose.parse({
  puId: 11,
  initStId: 1,
  states: [
    { stId: 1, events: [event(1, { isAny: true }, 7, 2)] },
    { stId: 2, events: [event(2, { isGt: 3 }, 5, 1), event(3, { isLt: 50 }, 3)] },
  ],
});

function event(evId: number, thresholds: object, count: number, gotoStId?: number) {
  const causes = [{ sId, orderId: 1, threshold: { count }, thresholds }];
  return { evId, eventLog: true, actions: { engine: { gotoStId } }, causes };
}
