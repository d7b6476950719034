import { afterAll, beforeAll, expect, it } from 'vitest';
import { coldAgain, purposeOf, warm } from './purposes.ts';
import { dayMs, hourMs, minuteMs, startTimeline, type Sensor, type Timeline } from './timeline.ts';

let timeline: Timeline;
beforeAll(async () => void (timeline = await startTimeline()));
afterAll(() => timeline?.close());

const notNotified = async (sensor: Sensor) =>
  (await sensor.events()).map(
    (event) => event.notNotified ?? (event.notified ? 'told' : 'nothing'),
  );

const range = (count: number) => Array.from({ length: count }, (_, n) => n);

it('three bad values 20 minutes old, then thirty live ones: one ring, because the old firings are too late', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  const from = timeline.now() - 20 * minuteMs;
  await sensor.measure(...range(3).map((n) => ({ val: 9, ts: from + n * 1_000 })));
  expect(await account.alarms()).toMatchObject([{ told: 'none', notNotified: 'too-old' }]);
  for (const _minute of range(30)) {
    timeline.advance(minuteMs);
    await sensor.measure({ val: 9, ts: timeline.now() });
  }
  await account.toldOf('alarm.opened', 1);
  expect(await notNotified(sensor)).toEqual([
    ...range(3).map(() => 'too-old'),
    'told',
    ...range(29).map(() => 'same-episode'),
  ]);
  expect(account.told()).toHaveLength(1);
});

it('the same for an event that moves the device, then eight hours of warm values: one ring, after the first live one', async () => {
  const account = await timeline.openAccount();
  const moving = warm(1, { actions: { engine: { gotoStId: 2 } } });
  const sensor = await account.addDevice([purposeOf([moving], [coldAgain(2, 1)])]);
  const from = timeline.now() - 20 * minuteMs;
  await sensor.measure(...range(3).map((n) => ({ val: 9, ts: from + n * 1_000 })));
  expect(account.told()).toEqual([]);
  await sensor.measure({ val: 9, ts: timeline.now() });
  // If the clock leapt while a message is being sent, the service would send it again.
  const told = async () => (await account.alarms())[0]?.told;
  await expect.poll(told, { timeout: 60_000 }).toBe('told');
  for (const _quarter of range(32)) {
    timeline.advance(15 * minuteMs);
    await sensor.measure({ val: 9, ts: timeline.now() });
  }
  expect(account.told()).toHaveLength(1);
  expect(await account.alarms('?state=open')).toMatchObject([{ told: 'told' }]);
  await sensor.measure({ val: 7, ts: timeline.now() });
  expect(await account.alarms()).toMatchObject([{ state: 'closed', closedBy: 'left-state' }]);
});

it('an hourly uploader whose newest value is fresh rings at once', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  const nowTs = timeline.now();
  await sensor.measure(
    ...range(60).map((n) => ({ val: n < 30 ? 5 : 9, ts: nowTs - (60 - n) * minuteMs })),
  );
  await account.toldOf('alarm.opened', 1);
  expect(account.told()).toHaveLength(1);
});

it('one whose newest value is 20 minutes old rings within 45 minutes, and its events say why they did not', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  const nowTs = timeline.now();
  await sensor.measure(...range(5).map((n) => ({ val: 9, ts: nowTs - (25 - n) * minuteMs })));
  expect(new Set(await notNotified(sensor))).toEqual(new Set(['too-old']));
  for (const _quarter of range(3)) timeline.advance(15 * minuteMs);
  const [opened] = await account.toldOf('alarm.opened', 1);
  expect(opened?.data.evId).toBe(1);
  const told = async () => (await account.alarms())[0]?.told;
  await expect.poll(told, { timeout: 60_000 }).toBe('told');
});

it('a clock 16 minutes slow rings after 15 minutes', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  for (const _minute of range(16)) {
    await sensor.measure({ val: 9, ts: timeline.now() - 16 * minuteMs });
    timeline.advance(minuteMs);
  }
  await account.toldOf('alarm.opened', 1);
  expect(account.told()).toHaveLength(1);
});

it('three weeks of backlog that end well do not ring', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  const from = timeline.now() - 21 * dayMs;
  for (const part of range(20))
    await sensor.measure(
      ...range(25).map((n) => {
        const hour = part * 25 + n;
        return { val: hour < 490 && hour % 10 < 5 ? 9 : 5, ts: from + hour * hourMs };
      }),
    );
  await sensor.measure({ val: 5, ts: timeline.now() });
  for (const _quarter of range(4)) timeline.advance(15 * minuteMs);
  expect(await account.alarms('?state=open')).toEqual([]);
  expect(account.told()).toEqual([]);
});

it('a clock set back three weeks rings again within 35 minutes', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  await sensor.measure({ val: 5, ts: timeline.now() });
  for (const _minute of range(36)) {
    timeline.advance(minuteMs);
    await sensor.measure({ val: 9, ts: timeline.now() - 21 * dayMs });
  }
  await account.toldOf('alarm.opened', 1);
  expect(account.told()).toHaveLength(1);
});

it('a door opened at 08:00 and a temperature above 8 at 12:00, both required: rings', async () => {
  const account = await timeline.openAccount();
  const open = { sId: '0x02', orderId: 1, thresholds: { isOneOf: [1] } };
  const sensor = await account.addDevice(
    [purposeOf([warm(1, { more: [open] })])],
    ['0x01', '0x02'],
  );
  await sensor.measure({ sId: '0x02', val: 1, ts: timeline.now() });
  timeline.advance(4 * hourMs);
  await sensor.measure({ val: 9, ts: timeline.now() });
  await account.toldOf('alarm.opened', 1);
});

it.each([0, 5 * minuteMs])(
  'a month of backlog with four excursions of 65 minutes: four alarms of 65 minutes, over long before they closed; kept open for %i ms',
  async (keepMs) => {
    const account = await timeline.openAccount();
    const sensor = await account.addDevice([purposeOf([warm(1, { actions: { keepMs } })])]);
    const step = 5 * minuteMs;
    const nowTs = timeline.now();
    const from = nowTs - 28 * dayMs;
    const excursions = [1, 8, 15, 22].map((day) => from + day * dayMs + 10 * step);
    const isWarm = (ts: number) =>
      excursions.some((began) => ts >= began && ts < began + 13 * step);
    const values = range((28 * dayMs) / step).map((n) => from + n * step);
    for (let n = 0; n < values.length; n += 1_000) {
      const message = values.slice(n, n + 1_000).map((ts) => ({ val: isWarm(ts) ? 9 : 5, ts }));
      await sensor.measure(...message);
    }
    for (const _minute of range(keepMs / minuteMs + 1)) timeline.advance(minuteMs);
    await expect.poll(() => account.alarms('?state=open')).toEqual([]);
    const alarms = (await account.alarms()).toReversed();
    expect(
      alarms.map(({ beganTs, overTs, firings, closedBy }) => ({
        beganTs,
        overTs,
        firings,
        closedBy,
      })),
    ).toEqual(
      excursions.map((beganTs) => ({
        beganTs,
        overTs: beganTs + 65 * minuteMs,
        firings: 13,
        closedBy: 'cleared',
      })),
    );
    for (const { overArrivedTs, closedTs } of alarms) {
      expect(overArrivedTs).toBeGreaterThanOrEqual(nowTs);
      if (keepMs === 0) expect(closedTs).toBe(overArrivedTs);
    }
    expect(account.told()).toEqual([]);
  },
);
