import { describe, expect, it } from 'vitest';
import { Entry, sizeOf } from '../../src/ingest/entry.ts';
import type { Work } from '../../src/ingest/lane.ts';
import { createLanes, type Lanes } from '../../src/ingest/lanes.ts';
import { split } from '../../src/ingest/split.ts';
import { device, measurementsUnit, unitIds } from './units.ts';

describe('lanes', () => {
  it('give a device’s messages in the order of their arrival', () => {
    const lanes = createLanes(10);
    const lane = lanes.laneOf(device(1));
    for (const id of ['a', 'b', 'c']) lanes.add(lane, measurementsUnit(id, 1));
    expect(unitIds(lanes.take(100))).toEqual(['a', 'b', 'c']);
  });

  it('never put a device into two batches at once', () => {
    const lanes = createLanes(10);
    const lane = lanes.laneOf(device(1));
    lanes.add(lane, measurementsUnit('a', 1));
    const first = lanes.take(100);
    lanes.add(lane, measurementsUnit('b', 1));
    lanes.add(lanes.laneOf(device(2)), measurementsUnit('c', 1));
    expect(unitIds(lanes.take(100))).toEqual(['c']);
    lanes.release(first);
    expect(unitIds(lanes.take(100))).toEqual(['b']);
  });

  it('fill a batch up to about the limit and leave the rest in line', () => {
    const lanes = createLanes(10);
    // Forty more than its measurements: none was read yet.
    for (const n of [1, 2, 3]) lanes.add(lanes.laneOf(device(n)), measurementsUnit(`d${n}`, 60));
    expect(unitIds(lanes.take(150))).toEqual(['d1', 'd2']);
    expect(unitIds(lanes.take(150))).toEqual(['d3']);
  });

  it('take a message larger than the limit alone', () => {
    const lanes = createLanes(10);
    const lane = lanes.laneOf(device(1));
    lanes.add(lane, measurementsUnit('large', 500));
    lanes.add(lane, measurementsUnit('small', 1));
    const first = lanes.take(100);
    expect(unitIds(first)).toEqual(['large']);
    lanes.release(first);
    expect(unitIds(lanes.take(100))).toEqual(['small']);
  });

  it('give up what was withdrawn, and keep the rest in line', () => {
    const lanes = createLanes(10);
    const [some, all] = [lanes.laneOf(device(1)), lanes.laneOf(device(2))];
    lanes.add(some, measurementsUnit('a', 1, true));
    lanes.add(some, measurementsUnit('b', 1));
    lanes.add(all, measurementsUnit('c', 1, true));
    const gone = [1, 2, 3].flatMap((deviceId) => lanes.takeWithdrawn(deviceId));
    expect(gone.map(({ entry }) => entry.id)).toEqual(['a', 'c']);
    expect(lanes.countWaiting()).toBe(1);
    expect(unitIds(lanes.take(100))).toEqual(['b']);
    expect(lanes.hasReady()).toBe(false);
  });

  it('forget idle devices beyond the limit, never one with messages', () => {
    const lanes = createLanes(2);
    const busy = lanes.laneOf(device(1));
    lanes.add(busy, measurementsUnit('kept', 1));
    const idle = lanes.laneOf(device(2));
    lanes.laneOf(device(3));
    lanes.laneOf(device(4));
    lanes.laneOf(device(5));
    expect(lanes.laneOf(device(1))).toBe(busy);
    expect(lanes.laneOf(device(2))).not.toBe(idle);
  });
});

describe('lanes of several accounts', () => {
  const fill = (lanes: Lanes, deviceId: number, accountId: number, messages: number, size = 1) => {
    const lane = lanes.laneOf(device(deviceId, accountId));
    for (let n = 0; n < messages; n++) lanes.add(lane, measurementsUnit(`${deviceId}.${n}`, size));
    return lane;
  };
  const countOf = (batch: Work[], accountId: number) =>
    unitIds(batch.filter(({ lane }) => lane.accountId === accountId)).length;

  it('share a batch, however many they are and however much waits for each', () => {
    const lanes = createLanes(2_000, 100);
    for (let n = 1; n <= 1_000; n++) fill(lanes, n, 1, 1);
    fill(lanes, 2_001, 2, 500);
    fill(lanes, 2_002, 3, 1);
    const batch = lanes.take(200);
    expect(countOf(batch, 3)).toBe(1);
    // A device that was not read yet costs forty besides.
    expect(countOf(batch, 2)).toBeGreaterThan(30);
    expect(countOf(batch, 1)).toBeGreaterThanOrEqual(2);
  });

  it('go on in the same batch where room is left, each device in its order', () => {
    const lanes = createLanes(10, 100);
    fill(lanes, 1, 1, 60);
    fill(lanes, 2, 2, 1);
    const batch = lanes.take(1_000);
    const all = Array.from({ length: 60 }, (_, n) => `1.${n}`);
    expect(batch).toHaveLength(2);
    expect(unitIds(batch.filter(({ lane }) => lane.accountId === 1))).toEqual(all);
    expect(lanes.countWaiting()).toBe(0);
  });

  it('keep what a batch had no room for until it is done', () => {
    const lanes = createLanes(10, 100);
    fill(lanes, 1, 1, 60);
    fill(lanes, 2, 2, 60);
    const batch = lanes.take(50);
    const [one, two] = [countOf(batch, 1), countOf(batch, 2)];
    expect(lanes.hasReady()).toBe(false);
    expect(lanes.countWaiting()).toBe(120 - one - two);
    lanes.release(batch);
    expect(unitIds(lanes.take(1_000))).toEqual(
      expect.arrayContaining([`1.${one}`, `1.59`, `2.${two}`, `2.59`]),
    );
  });

  it('pay for what is known only later, and for what was spent on parsing', () => {
    const lanes = createLanes(10, 100);
    fill(lanes, 1, 1, 1);
    fill(lanes, 2, 2, 1);
    const batch = lanes.take(100);
    lanes.charge(batch, new Map([[1, 300]]));
    lanes.release(batch);
    fill(lanes, 1, 1, 1);
    for (let n = 0; n < 40; n++) fill(lanes, 10 + n, 2, 1);
    expect(countOf(lanes.take(100), 1)).toBe(0);
    const parsed = createLanes(10, 100);
    const lane = parsed.laneOf(device(1, 1));
    const unit = measurementsUnit('parsed', 1);
    parsed.add(lane, { ...unit, entry: withParsing(unit.entry, 300) });
    for (let n = 0; n < 40; n++) fill(parsed, 10 + n, 2, 1);
    const first = parsed.take(50);
    parsed.release(first);
    fill(parsed, 1, 1, 1);
    expect(countOf(parsed.take(100), 1)).toBe(0);
  });

  const withParsing = ({ uplink, delivery }: Entry, parsing: number) =>
    new Entry({ ...uplink, parsing }, delivery);
});

describe('lanes that are forgotten', () => {
  it('are those that were used least recently', () => {
    const lanes = createLanes(3);
    const [first, second, third] = [1, 2, 3].map((n) => lanes.laneOf(device(n)));
    lanes.laneOf(device(1));
    lanes.laneOf(device(4));
    expect(lanes.laneOf(device(1))).toBe(first);
    expect(lanes.laneOf(device(3))).toBe(third);
    expect(lanes.laneOf(device(2))).not.toBe(second);
  });

  it('do not include the one that is asked for, were all others in use', () => {
    const lanes = createLanes(1);
    lanes.add(lanes.laneOf(device(1)), measurementsUnit('a', 1));
    const asked = lanes.laneOf(device(2));
    expect(lanes.laneOf(device(2))).toBe(asked);
  });
});

describe('what is put back', () => {
  it('is the next of its device, and waits until the batch it came from is done', () => {
    const lanes = createLanes(10);
    const lane = lanes.laneOf(device(1));
    for (const id of ['a', 'b']) lanes.add(lane, measurementsUnit(id, 1));
    const batch = lanes.take(100);
    lanes.add(lane, measurementsUnit('c', 1));
    lanes.putBack([{ lane, units: batch[0]?.units.slice(1) ?? [] }]);
    expect(lanes.countWaiting()).toBe(2);
    expect(lanes.hasReady()).toBe(false);
    lanes.release(batch);
    expect(unitIds(lanes.take(100))).toEqual(['b', 'c']);
  });

  it('goes behind other devices', () => {
    const lanes = createLanes(10);
    const lane = lanes.laneOf(device(1));
    lanes.add(lane, measurementsUnit('a', 1));
    const batch = lanes.take(100);
    lanes.add(lanes.laneOf(device(2)), measurementsUnit('b', 1));
    lanes.putBack(batch);
    lanes.release(batch);
    expect(unitIds(lanes.take(100))).toEqual(['b', 'a']);
  });
});

describe('split', () => {
  it('halves by device, then by message, then by item, keeping the order', () => {
    const lanes = createLanes(10);
    const units = ['a', 'b'].map((id) => measurementsUnit(id, 2));
    const [one, two] = [lanes.laneOf(device(1)), lanes.laneOf(device(2))];
    const byDevice = split([
      { lane: one, units },
      { lane: two, units: [measurementsUnit('c', 1)] },
    ]);
    expect(byDevice?.map(unitIds)).toEqual([['a', 'b'], ['c']]);
    expect(split([{ lane: one, units }])?.map(unitIds)).toEqual([['a'], ['b']]);
    const [unit] = units;
    const byItem = split([{ lane: one, units: unit ? [unit] : [] }]);
    expect(byItem?.map((part) => part[0]?.units.map(({ content }) => sizeOf(content)))).toEqual([
      [1],
      [1],
    ]);
    expect(unit?.entry.open).toBe(2);
  });

  it('leaves a single item alone', () => {
    const lane = createLanes(1).laneOf(device(1));
    expect(split([{ lane, units: [measurementsUnit('a', 1)] }])).toBeNull();
  });
});
