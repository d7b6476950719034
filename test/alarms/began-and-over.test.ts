import { expect, it } from 'vitest';
import { cold, Device, ended, fired, minute, moved, of, signal, start, warm } from './fixtures.ts';

const began = { ts: start - 10 * minute, arrivedTs: start - 9 * minute };
const lasted = ({ closed }: Device) =>
  closed.map(({ beganTs, beganArrivedTs, overTs, overArrivedTs, closedBy }) => ({
    began: beganTs === null ? null : [beganTs, beganArrivedTs],
    over: overTs === null ? null : [overTs, overArrivedTs],
    closedBy,
  }));
const begun = [began.ts, began.arrivedTs];

it('keeps the begin of its first firing, and is over with the measurement that disagrees, however late it came', () => {
  const device = new Device();
  device.take(fired({ began }));
  device.take(fired({ atMs: minute, isFirst: false, began: { ts: start, arrivedTs: start } }));
  expect(device.alarm).toMatchObject({ beganTs: began.ts, overTs: null, overArrivedTs: null });
  device.take(ended(60 * minute, start + 5 * minute));
  const over = [start + 5 * minute, start + 60 * minute];
  expect(lasted(device)).toEqual([{ began: begun, over, closedBy: 'cleared' }]);
});

it('that moved the device is over with the measurement that leaves the state, or the report of another', () => {
  for (const isReport of [false, true]) {
    const device = new Device();
    device.take(fired({ began, movedTo: warm }), moved(cold, warm));
    device.take(ended(minute));
    device.take(moved(warm, cold, isReport, 2 * minute));
    const over = [start + 2 * minute, start + 2 * minute];
    expect(lasted(device)).toEqual([{ began: begun, over, closedBy: 'left-state' }]);
  }
});

it('with keepMs is over with the last end that no firing followed, whenever it closes', () => {
  const device = new Device();
  const keeping = { actions: { keepMs: 30 * minute } };
  device.take(fired({ ...keeping, began }));
  device.take(ended(minute));
  expect(device.alarm.overTs).toBe(start + minute);
  device.take(fired({ ...keeping, atMs: 2 * minute }));
  expect(device.alarm).toMatchObject({ beganTs: began.ts, overTs: null });
  device.take(ended(3 * minute));
  device.take(signal({ kind: 'heard', sIds: [] }, 60 * minute));
  const over = [start + 3 * minute, start + 3 * minute];
  expect(lasted(device)).toEqual([{ began: begun, over, closedBy: 'cleared' }]);
  expect(device.closed[0]?.closedTs).toBe(start + 33 * minute);
});

it('is not over where a profile, a configuration or time closes it', () => {
  const device = new Device();
  device.take(fired({ began }));
  device.take(signal({ kind: 'configuration', sIds: [] }));
  device.take(fired({ began }));
  device.take(signal({ kind: 'profile' }));
  device.take(fired({ began, reportKey: 'a', movedTo: warm }));
  device.take(signal({ kind: 'heard', sIds: [] }, 61 * minute));
  expect(lasted(device)).toEqual(
    ['configuration', 'profile', 'expired'].map((closedBy) => ({
      began: begun,
      over: null,
      closedBy,
    })),
  );
});

it('is over when it began if the value that ends a silence was measured before that', () => {
  const device = new Device();
  device.take(fired({ began }));
  device.take(ended(minute, began.ts - 5 * minute));
  expect(lasted(device)).toEqual([
    { began: begun, over: [began.ts, start + minute], closedBy: 'cleared' },
  ]);
});

it('of an episode from before alarms existed, or with evidence of an earlier version, has no begin', () => {
  const device = new Device();
  device.before.carried = { known: new Set() };
  device.take(fired({ began, isFirst: false }));
  device.take(ended());
  device.before.carried = null;
  device.take(fired({ began: null, of }));
  device.take(ended());
  expect(lasted(device).map((one) => one.began)).toEqual([null, null]);
});
