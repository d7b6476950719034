import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configuration, openApp } from './app.ts';
import type { App, Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { startPhones } from './phones.ts';
import type { Phones } from './phones.ts';
import { testService } from './service.ts';
import type { TestService } from './service.ts';

type Outcome = { kind: string; recipient: string; state: string; title: string; body: string };

const purpose = {
  puId: 1,
  name: 'Greenhouse',
  initStId: 1,
  states: [
    {
      stId: 1,
      events: [
        {
          evId: 5,
          name: 'Too warm',
          eventLog: true,
          actions: {
            cloud: { sendPush: true },
            sms: { text: 'Open the window', phoneNumber: ['+420111', '+420222'] },
            display: { showText: 'HOT' },
            engine: { gotoStId: 2 },
          },
          causes: [{ sId: '0x01', threshold: { count: 2 }, thresholds: { isGt: 30 } }],
        },
      ],
    },
    { stId: 2, events: [] },
  ],
};

describe('an event that fires', () => {
  let phones: Phones;
  let service: TestService;
  let app: App;

  beforeAll(async () => {
    phones = await startPhones();
    const { notifications } = phones;
    service = await testService({}, { change: (config) => ({ ...config, notifications }) });
    app = await openApp(service.url);
    await app.call('PUT', '/v2/accounts', { name: 'Ann', apn: [{ token: 'abcdef01' }] });
  });
  afterAll(async () => {
    await service.close();
    await phones.close();
  });

  const prepare = async () => {
    const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
    const device = await connectDevice(registration);
    const { pId } = await app.call<{ pId: string }>('POST', '/v2/devices/profile', {
      deviceAuthUuids: [device.uuid],
      purposes: [purpose],
    });
    return { device, pId };
  };
  const eventsOf = async (uuid: string) =>
    (await app.call<{ events: unknown[] }>('GET', `/v2/events/${uuid}`)).events;
  const outcomesOf = async (uuid: string) =>
    (await app.call<{ notifications: Outcome[] }>('GET', `/v2/devices/${uuid}/notifications`))
      .notifications;
  const allSent = async (uuid: string) => {
    await expect
      .poll(async () => (await outcomesOf(uuid)).map(({ state }) => state), { timeout: 60_000 })
      .toEqual(['sent', 'sent', 'sent']);
  };

  it('is recorded, shown, reported to the device and sent to phones, once the commit is done', async () => {
    const { device, pId } = await prepare();
    await device.subscribe('down/state');
    await device.subscribe('down/display');
    const ts = Date.now();
    await device.publish('up/measurements', { sId: '0x01', val: 31, ts });
    expect(await app.call('GET', `/v2/devices/${device.uuid}/evaluation`)).toMatchObject({
      engine: 'service',
      evaluation: {
        pId,
        puId: 1,
        stId: 1,
        events: [
          { evId: 5, causes: [{ matched: 1, needed: 2, missing: 1, seen: { val: 31, ts } }] },
        ],
      },
    });

    await device.publish('up/measurements', { sId: '0x01', val: 32.5, ts: ts + 1 });
    const engine = { pId, puId: 1, stId: 1, evId: 5, ts: ts + 1 };
    const found = await eventsOf(device.uuid);
    expect(found).toHaveLength(3);
    expect(found).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          type: 'sense',
          timestamp: ts + 1,
          cause: { engine, senses: [{ sId: '0x01', val: 32.5, ts: ts + 1 }] },
          why: [expect.objectContaining({ compared: 32.5, matched: 2, of: 2, needed: 2 })],
        }),
        expect.objectContaining({
          type: 'device',
          event: 'stateChanged',
          cause: { engine },
          oldValue: 1,
          newValue: 2,
        }),
      ]),
    );
    expect(await device.receive('down/display')).toMatchObject({ text: 'HOT' });
    await expect.poll(() => device.received.at(-1)?.payload).toMatchObject({ puId: 1, stId: 2 });

    await allSent(device.uuid);
    expect(await outcomesOf(device.uuid)).toMatchObject([
      {
        kind: 'sms',
        recipient: '…222',
        body: 'Greenhouse: Open the window',
        attempts: 1,
        via: 'webhook',
      },
      {
        kind: 'sms',
        recipient: '…111',
        body: 'Greenhouse: Open the window',
        attempts: 1,
        via: 'webhook',
      },
      {
        kind: 'push',
        recipient: '…ef01',
        title: 'Greenhouse: Too warm',
        via: 'apns',
        cause: { engine },
      },
    ]);
    expect(phones.pushes.at(-1)).toMatchObject({
      path: '/3/device/abcdef01',
      body: {
        aps: {
          alert: {
            title: 'Greenhouse: Too warm',
            body: expect.stringMatching(
              /^0x01 32\.5, above 30, 2 of the last 2 \(\d\d:\d\d UTC\)$/,
            ),
          },
        },
      },
    });
    expect(phones.texts).toHaveLength(2);
    await device.end();
  });

  it('notifies once if the device itself found it, however often it is delivered', async () => {
    const { device, pId } = await prepare();
    await device.publish('up/profile', { pId, state: 'current', engine: 'device' });
    const ts = Date.now();
    const engine = { pId, puId: 1, stId: 1, evId: 5, ts };
    const report = { cause: { engine, senses: [{ sId: '0x01', val: 33, ts }] } };
    await device.publish('up/measurements', [
      { sId: '0x01', val: 33, ts: ts - 1 },
      { sId: '0x01', val: 33, ts },
    ]);
    await device.publish('up/events', report);
    await device.publish('up/events', report);
    await device.publish('up/state', { puId: 1, stId: 2, evId: 5, ts });

    const found = await eventsOf(device.uuid);
    expect(found).toHaveLength(3);
    expect(found).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: 'sense', cause: report.cause }),
        expect.objectContaining({ type: 'device', event: 'stateChanged', newValue: 2 }),
      ]),
    );
    await allSent(device.uuid);
    expect(await app.call('GET', `/v2/devices/${device.uuid}/evaluation`)).toMatchObject({
      engine: 'device',
      evaluation: null,
    });
    await device.end();
  });

  it('is recorded for a backlog, without notifying phones', async () => {
    const { device } = await prepare();
    const old = Date.now() - 16 * 60_000;
    await device.publish('up/measurements', [
      { sId: '0x01', val: 31, ts: old },
      { sId: '0x01', val: 32, ts: old + 1 },
    ]);
    expect(await eventsOf(device.uuid)).toContainEqual(
      expect.objectContaining({ type: 'sense', timestamp: old + 1 }),
    );
    expect(await outcomesOf(device.uuid)).toEqual([]);
    await device.end();
  });

  it('has its notifications listed page by page, newest first, for its own account only', async () => {
    const { device } = await prepare();
    const ts = Date.now();
    await device.publish('up/measurements', [
      { sId: '0x01', val: 31, ts },
      { sId: '0x01', val: 32, ts: ts + 1 },
    ]);
    const path = `/v2/devices/${device.uuid}/notifications`;
    const all = await outcomesOf(device.uuid);
    expect(all).toHaveLength(3);
    const token = await login(app);
    const pages: Outcome[] = [];
    let next: string | undefined = `${path}?limit=2`;
    while (next !== undefined) {
      const answer: Response = await fetch(service.url + next, {
        headers: { Authorization: `Bearer ${token}` },
      });
      pages.push(...((await answer.json()) as { notifications: Outcome[] }).notifications);
      next = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
    }
    expect(pages.map(({ kind, recipient }) => [kind, recipient])).toEqual(
      all.map(({ kind, recipient }) => [kind, recipient]),
    );
    const stranger = await openApp(service.url);
    await expect(stranger.call('GET', path)).rejects.toThrow(/^404 /);
    await device.end();
  });

  const login = async ({ email }: App) => {
    const body = JSON.stringify({ email, password: 'correct horse battery' });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(`${service.url}/v2/accounts/login`, {
      method: 'POST',
      headers,
      body,
    });
    return ((await answer.json()) as { accountAuthToken: string }).accountAuthToken;
  };
});
