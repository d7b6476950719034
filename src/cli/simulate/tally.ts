import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';

/** What a run has counted so far, over all devices. */
export type Tally = {
  published: number;
  acknowledged: number;
  /** Texts that arrived on `down/display`: an event fired and told its device. */
  events: number;
  /** Messages on `down/errors`, and what the first one said. */
  refused: number;
  firstRefusal: string | null;
  /** Times a device tried to connect again. */
  reconnects: number;
  /** Times a reading was due while too many messages waited for their acknowledgement. */
  skipped: number;
  /** From publishing to the acknowledgement, in microseconds. */
  acknowledgementUs: RecordableHistogram;
};

export function createTally(): Tally {
  return {
    published: 0,
    acknowledged: 0,
    events: 0,
    refused: 0,
    firstRefusal: null,
    reconnects: 0,
    skipped: 0,
    acknowledgementUs: createHistogram({ lowest: 1, highest: 3_600_000_000, figures: 3 }),
  };
}

/** The given percentile of the acknowledgements in words: `3.2 ms`, or a dash when there was none. */
function acknowledgedWithin(tally: Tally, percentile: number): string {
  if (tally.acknowledgementUs.count === 0) return '-';
  const ms = tally.acknowledgementUs.percentile(percentile) / 1_000;
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms).toLocaleString('en')} ms`;
}

/** One line on where a run stands. */
export function progressLine(tally: Tally, elapsedSeconds: number, perSecond: number): string {
  return [
    `${Math.floor(elapsedSeconds)} s`,
    `${perSecond.toFixed(0)} messages/s`,
    `${count(tally.acknowledged)} of ${count(tally.published)} acknowledged`,
    `p50 ${acknowledgedWithin(tally, 50)}`,
    `p99 ${acknowledgedWithin(tally, 99)}`,
    `${count(tally.events)} events`,
  ].join('  ');
}

/** A number as people write it: 12,345. */
export function count(value: number): string {
  return value.toLocaleString('en');
}
