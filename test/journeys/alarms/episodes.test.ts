import { afterAll, beforeAll, expect, it } from 'vitest';
import { purposeOf, warm } from './purposes.ts';
import { dayMs, minuteMs, startTimeline, type Timeline } from './timeline.ts';

let timeline: Timeline;
beforeAll(async () => void (timeline = await startTimeline()));
afterAll(() => timeline?.close());

const range = (count: number) => Array.from({ length: count }, (_, n) => n);

it('a global event that moves, values 9, 5, 9, where the 5 moves back: two alarms, two rings', async () => {
  const account = await timeline.openAccount();
  const back = {
    evId: 2,
    causes: [{ sId: '0x01', thresholds: { isLt: 6 } }],
    actions: { engine: { gotoStId: 1 } },
  };
  const purpose = {
    puId: 1,
    initStId: 1,
    states: [
      { stId: 1, events: [] },
      { stId: 2, events: [back] },
      { stId: 3, isGlobal: true, events: [warm(1, { actions: { engine: { gotoStId: 2 } } })] },
    ],
  };
  const sensor = await account.addDevice([purpose]);
  for (const val of [9, 5, 9]) await sensor.measure({ val });
  await account.toldOf('alarm.opened', 2);
  expect(await account.alarms()).toHaveLength(2);
});

it('alternating values of 8.1 and 7.9 with keepMs of ten minutes: one alarm, one ring', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([
    purposeOf([warm(1, { actions: { keepMs: 10 * minuteMs } })]),
  ]);
  for (const n of range(30)) {
    await sensor.measure({ val: n % 2 === 0 ? 8.1 : 7.9 });
    timeline.advance(minuteMs);
  }
  await account.toldOf('alarm.opened', 1);
  expect(await account.alarms()).toMatchObject([{ state: 'open' }]);
  timeline.advance(11 * minuteMs);
  const states = async () =>
    (await account.alarms()).map(({ state, closedBy }) => [state, closedBy]);
  await expect.poll(states, { timeout: 60_000 }).toEqual([['closed', 'cleared']]);
  expect(account.told()).toHaveLength(1);
});

it('a device that reports its own state each minute for an hour: one ring, and a count of 5 is reached', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([
    purposeOf([warm(1), warm(2, { threshold: { count: 5 } })]),
  ]);
  for (const _minute of range(60)) {
    await sensor.measure({ val: 9 });
    await sensor.device.publish('up/state', { puId: 1, stId: 1, ts: timeline.now() });
    timeline.advance(minuteMs);
  }
  await account.toldOf('alarm.opened', 2);
  expect(account.told().map(({ data }) => data.evId)).toEqual([1, 2]);
});

it('a notifying event beside a moving one on the same value: open while the new state lasts', async () => {
  const account = await timeline.openAccount();
  const moving = {
    evId: 2,
    causes: [{ sId: '0x01', thresholds: { isGt: 8 } }],
    actions: { engine: { gotoStId: 2 } },
  };
  const back = {
    evId: 3,
    causes: [{ sId: '0x01', thresholds: { isLt: 6 } }],
    actions: { engine: { gotoStId: 1 } },
  };
  const sensor = await account.addDevice([purposeOf([warm(1), moving], [back])]);
  for (const val of [9, 7, 9, 7]) await sensor.measure({ val });
  expect(await account.alarms()).toMatchObject([{ state: 'open' }]);
  await sensor.measure({ val: 5 });
  expect(await account.alarms()).toMatchObject([{ state: 'closed', closedBy: 'left-state' }]);
  await account.toldOf('alarm.opened', 1);
  expect(account.told()).toHaveLength(1);
});

it.each(['before', 'after'])(
  'reports of a device with its own engine, on two days, its state reported %s: two rings, none stays open',
  async (when) => {
    const account = await timeline.openAccount();
    const moving = warm(1, { actions: { engine: { gotoStId: 2 } } });
    const sensor = await account.addDevice([purposeOf([moving], [])]);
    await sensor.device.subscribe('down/profile');
    const { pId } = (await sensor.device.receive('down/profile')) as { pId: string };
    await sensor.device.publish('up/profile', { pId, state: 'current', engine: 'device' });
    for (const _day of range(2)) {
      const ts = timeline.now();
      const state = (stId: number) =>
        sensor.device.publish('up/state', { puId: 1, stId, ts: timeline.now() });
      if (when === 'before') await state(2);
      await sensor.device.publish('up/events', {
        cause: {
          engine: { pId, puId: 1, stId: 1, evId: 1, ts },
          senses: [{ sId: '0x01', val: 9, ts }],
        },
      });
      if (when === 'after') await state(2);
      timeline.advance(10 * minuteMs);
      await state(1);
      timeline.advance(dayMs);
    }
    await account.toldOf('alarm.opened', 2);
    expect(account.told()).toHaveLength(2);
    const open = async () => (await account.alarms('?state=open')).length;
    await expect.poll(open, { timeout: 60_000 }).toBe(0);
  },
);

it('a new profile, a sense taken out, the device removed: the alarm closes or disappears', async () => {
  const account = await timeline.openAccount();
  const [first, second, third] = [
    await account.addDevice([purposeOf([warm(1)])]),
    await account.addDevice([purposeOf([warm(1)])]),
    await account.addDevice([purposeOf([warm(1)])]),
  ];
  for (const sensor of [first, second, third]) await sensor.measure({ val: 9 });
  await account.toldOf('alarm.opened', 3);
  await account.app.call('POST', '/v2/devices/profile', {
    deviceAuthUuids: [first.uuid],
    purposes: [purposeOf([warm(1, { thresholds: { isGt: 7 } })])],
  });
  await first.measure({ val: 9 });
  await second.device.publish('up/configuration', {
    device: { name: 'Freezer' },
    module: [{ moduleId: 'probe', senses: [{ sId: '0x09' }] }],
  });
  await account.app.call('DELETE', `/v2/devices/${third.uuid}`);
  const found = async () =>
    (await account.alarms()).map(({ state, closedBy }) => closedBy ?? state).toSorted();
  await expect.poll(found, { timeout: 60_000 }).toEqual(['configuration', 'open', 'profile']);
  await account.toldOf('alarm.opened', 4);
});
