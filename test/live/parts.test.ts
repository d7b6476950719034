import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  maxSent,
  parseLivePosition,
  Value,
  ValueThrottle,
  writeLivePosition,
} from '../../src/live/value.ts';

const device = { deviceId: 1, uuid: 'u' };
const position = { ts: 1_795_219_200_000, server: 'abc', snapshot: '5:9:7' };

test('a position is read as it was written', () => {
  const sent = fc.record({
    deviceId: fc.nat(),
    sId: fc.string({
      maxLength: 8,
      unit: fc.constantFrom('0', 'x', 'a', ':', ',', '/', ';', '=', '%', 'ä'),
    }),
    ts: fc.nat({ max: 8_640_000_000_000 }),
  });
  fc.assert(
    fc.property(fc.array(sent, { maxLength: maxSent }), (list) => {
      const short = list.filter(({ sId }) => encodeURIComponent(sId).length <= 24);
      const text = writeLivePosition({ position, sent: list });
      expect(text).toMatch(/^[\x21-\x7e]+$/);
      expect(text.length).toBeLessThan(1_000);
      expect(parseLivePosition(text)).toEqual({ position, sent: short });
    }),
  );
});

test('passes one value of a sense per period, the newest', () => {
  const throttle = new ValueThrottle(100);
  const value = (sId: string, ts: number) => new Value(device, [sId, ts, ts]);
  expect(throttle.isDue(value('a', 1), 0)).toBe(true);
  expect(throttle.isDue(value('b', 1), 10)).toBe(true);
  expect(throttle.isDue(value('a', 3), 20)).toBe(false);
  expect(throttle.isDue(value('a', 2), 30)).toBe(false);
  expect(throttle.isDue(value('b', 0), 40)).toBe(false);
  expect(throttle.nextMs).toBe(100);
  expect(throttle.takeDue(99, 10)).toEqual([]);
  // A late value of b gives way to the one that was sent.
  expect(throttle.takeDue(110, 10).map(({ sId, ts }) => [sId, ts])).toEqual([['a', 3]]);
  expect(throttle.isDue(value('b', 2), 111)).toBe(true);
  expect(throttle.takeDue(500, 10)).toEqual([]);
  expect(throttle.nextMs).toBe(Infinity);
});

test('passes values in limited batches, each sense a period after it was last sent', () => {
  const throttle = new ValueThrottle(100);
  for (let round = 0; round < 2; round += 1)
    for (let i = 0; i < 5; i += 1) throttle.isDue(new Value(device, [`${i}`, round, round]), i);
  expect(throttle.takeDue(200, 3)).toHaveLength(3);
  expect(throttle.takeDue(200, 3)).toHaveLength(2);
  expect(throttle.nextMs).toBe(300);
});
