import { describe, expect, it } from 'vitest';
import { sizeOf } from '../../src/ingest/entry.ts';
import { createLanes } from '../../src/ingest/lanes.ts';
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
    for (const n of [1, 2, 3]) lanes.add(lanes.laneOf(device(n)), measurementsUnit(`d${n}`, 60));
    expect(unitIds(lanes.take(100))).toEqual(['d1', 'd2']);
    expect(unitIds(lanes.take(100))).toEqual(['d3']);
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
