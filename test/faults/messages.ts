import { Purpose } from '../../src/contract/purpose.ts';

/** The sense that every device of the load reports. */
export const sId = '0x01';

export const configuration = {
  device: { name: 'witness' },
  module: [{ moduleId: 'm', senses: [{ sId, min: 0, max: 10_000_000 }, { sId: '0x02' }] }],
};

/** An item that is always rejected, because the device has no such sense. */
export const wrongItem = JSON.stringify({ sId: '0x0f', val: 1 });

/** Message `seq` of any device. Its value identifies it; its time is a millisecond after the previous one. */
export const measurementOf = (startTs: number, seq: number) => ({
  sId,
  val: seq,
  ts: startTs + seq,
});

/**
 * Counts, so that a measurement evaluated twice, or not at all, moves every later event, and changes its state, so that
 * the order matters. In the last state most measurements leave the evidence as it is.
 */
export const witnessPurpose: Purpose = Purpose.parse({
  puId: 11,
  initStId: 1,
  states: [
    { stId: 1, events: [event(1, { isAny: true }, { count: 7 }, 2)] },
    {
      stId: 2,
      events: [event(2, { isGt: 3 }, { count: 5 }, 3), event(3, { isLt: 50 }, { count: 3 })],
    },
    { stId: 3, events: [event(4, { isGt: 6 }, { relative: true }, 1)] },
  ],
});

function event(evId: number, thresholds: object, threshold: object, gotoStId?: number) {
  const causes = [{ sId, orderId: 1, threshold, thresholds }];
  return { evId, eventLog: true, actions: { engine: { gotoStId } }, causes };
}
