import { expect, test } from 'vitest';
import { Backlog } from '../../src/live/live.ts';
import type { LiveDevice } from '../../src/bus/bus.ts';

const device = (count: number): LiveDevice => ({
  deviceId: 1,
  uuid: 'u',
  values: Array.from({ length: count }, (_, i) => ['a', i, i]),
});

test('returns what was heard in order, in whole messages', () => {
  const backlog = new Backlog({ values: 0 });
  backlog.add([device(2), device(1)], 5);
  backlog.add([device(2)], 6);
  expect(backlog.oldestMs).toBe(5);
  expect(backlog.take(1).map(({ ts }) => ts)).toEqual([0, 1, 0]);
  expect(backlog.oldestMs).toBe(6);
  expect(backlog.take(100)).toHaveLength(2);
  expect([backlog.isEmpty, backlog.oldestMs]).toEqual([true, undefined]);
});

test('holds a limited number of values of an account, and of all', () => {
  const all = { values: 0 };
  const backlogs = Array.from({ length: 6 }, () => new Backlog(all));
  const full = backlogs.map((backlog) => backlog.add([device(100_000)], 0));
  expect(full).toEqual([true, true, true, true, true, false]);
  expect(backlogs[0]?.add([device(1)], 0)).toBe(false);
  backlogs[0]?.clear();
  expect(all.values).toBe(400_000);
  expect(backlogs[5]?.add([device(100_000)], 0)).toBe(true);
  backlogs[5]?.take(1);
  expect(all.values).toBe(400_000);
});
