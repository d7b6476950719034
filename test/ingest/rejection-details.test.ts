import { expect, test } from 'vitest';
import { checkSense, checkTime } from '../../src/ingest/rules/measurements.ts';

const senses = new Map([['0x01', { sId: '0x01', max: 85 }]]);
const arrived = { arrivedTs: 1_000_000, limits: { maxAheadMs: 300_000 } };

test('a rejection has the values that its message names', () => {
  expect(checkSense(senses, '0x99', 1, '')?.details).toEqual({ sId: '0x99' });
  expect(checkSense(senses, '0x01', 900, '')?.details).toEqual({ sId: '0x01', val: 900, max: 85 });
  expect(checkTime(1_300_001, arrived, 90_000, '')?.details).toEqual({
    ts: 1_300_001,
    maxAheadMs: 300_000,
  });
  expect(checkTime(1, arrived, 90_000, '')?.details).toEqual({ ts: 1, maxAgeMs: 90_000 });
});
