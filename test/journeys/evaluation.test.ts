import { afterAll, beforeAll, expect, it } from 'vitest';
import { configuration, openApp, type App, type Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService, type TestService } from './service.ts';

const minute = 60_000;

const purpose = {
  puId: 1,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: [
        {
          evId: 1,
          name: 'too warm',
          actions: { cloud: { sendPush: true } },
          causes: [{ sId: '0x01', thresholds: { isGt: 30 } }],
        },
        {
          evId: 2,
          name: 'silent',
          causes: [{ sId: '0x02', threshold: { noneForMs: 15 * minute } }],
        },
        {
          evId: 3,
          name: 'warm for long',
          causes: [{ sId: '0x01', threshold: { forMs: 10 * minute }, thresholds: { isGt: 25 } }],
        },
      ],
    },
  ],
};

let service: TestService;
let app: App;
beforeAll(async () => {
  service = await testService();
  app = await openApp(service.url);
});
afterAll(() => service?.close());

type Answer = {
  evaluation: { clockAheadTs?: number; events: { text: string; causes: { text: string }[] }[] };
};

it('says in words what causes wait for, what came too late, and whether the event would ring', async () => {
  const device = await connectDevice(
    await app.call<Registration>('POST', '/v2/devices', configuration),
  );
  await app.call('POST', '/v2/devices/profile', {
    deviceAuthUuids: [device.uuid],
    purposes: [purpose],
  });
  const evaluate = async () => {
    const path = `/v2/devices/${device.uuid}/evaluation`;
    const { events } = (await app.call<Answer>('GET', path)).evaluation;
    return events.map(({ text, causes }) => [text, ...causes.map((cause) => cause.text)]);
  };
  const now = Date.now();
  await device.publish('up/measurements', { sId: '0x01', val: 31, ts: now });
  await device.publish('up/measurements', [
    { sId: '0x01', val: 20, ts: now - 3 * minute },
    { sId: '0x01', val: 20, ts: now - 2 * minute },
  ]);
  const late =
    /; the last 2 came too late: they are older than the newest value, dated [-\d]+ [:\d]+ UTC$/;
  const [warm, silent, long] = await evaluate();
  expect(warm?.[0]).toBe(
    'fires when its cause holds; its alarm is open, but nobody was notified (no-recipient)',
  );
  expect(warm?.[1]).toMatch(late);
  expect(silent?.[1]).toMatch(/^silent for \d of 15 minutes, holds in (15 min|14 min \d+ s)$/);
  expect(long?.[1]).toMatch(/^agrees for \d of 10 minutes, holds in (10 min|9 min \d+ s)/);
  expect(long?.[1]).toMatch(late);

  const { alarms } = await app.call<{ alarms: { alarmId: number }[] }>('GET', '/v2/alarms');
  const untilTs = now + 60 * minute;
  await app.call('POST', `/v2/alarms/${alarms[0]?.alarmId}/snooze`, { untilTs });
  expect((await evaluate())[0]?.[0]).toMatch(
    /would notify people, but it is snoozed until [-\d]+ [:\d]+ UTC$/,
  );
  await app.call('PUT', `/v2/devices/${device.uuid}/mute`, { untilTs });
  expect((await evaluate())[0]?.[0]).toMatch(/but the device is muted until/);
  await device.end();
});

it("says that a device's clock is ahead, and when the device was told", async () => {
  const device = await connectDevice(
    await app.call<Registration>('POST', '/v2/devices', configuration),
  );
  await app.call('POST', '/v2/devices/profile', {
    deviceAuthUuids: [device.uuid],
    purposes: [purpose],
  });
  const evaluate = async () =>
    (await app.call<Answer>('GET', `/v2/devices/${device.uuid}/evaluation`)).evaluation;
  const now = Date.now();
  await device.publish('up/measurements', { sId: '0x01', val: 20, ts: now });
  expect(await evaluate()).not.toHaveProperty('clockAheadTs');
  await device.publish('up/measurements', { sId: '0x01', val: 20, ts: now + 4 * minute });
  const { events, clockAheadTs = 0 } = await evaluate();
  expect(clockAheadTs).toBeGreaterThanOrEqual(now);
  expect(events[0]?.causes[0]).toMatchObject({
    text: expect.stringMatching(
      /; its clock is ahead: its newest value is dated [-\d]+ [:\d]+ UTC$/,
    ) as string,
    ahead: { newestTs: now + 4 * minute },
  });
  await device.end();
});
