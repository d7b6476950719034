import { connectAsync } from 'mqtt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Pool } from 'pg';
import { schema } from '../support/template.ts';
import { configuration, openApp } from './app.ts';
import type { App, Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService } from './service.ts';
import type { TestService } from './service.ts';

/** Each measurement above 30 shows the state's text and moves on to the next of `states` states. */
const tour = (states: number) => ({
  puId: 3,
  name: 'tour',
  initStId: 1,
  states: Array.from({ length: states }, (_, index) => ({
    stId: index + 1,
    events: [
      {
        evId: 1,
        name: 'on',
        actions: {
          display: { showText: `text ${index + 1}` },
          engine: { gotoStId: ((index + 1) % states) + 1 },
        },
        causes: [{ sId: '0x01', orderId: 0, thresholds: { isAny: true } }],
      },
    ],
  })),
});

describe('texts for the display of a device that sleeps', () => {
  let service: TestService;
  let app: App;
  let db: Pool;
  beforeAll(async () => {
    service = await testService();
    app = await openApp(service.url);
    const options = `-c search_path=${schema}`;
    db = new Pool({ connectionString: service.databaseUrl, max: 1, options });
  });
  afterAll(async () => {
    await db.end();
    await service.close();
  });

  /** A device that runs a tour and has sent `fired` measurements along it while nobody listened. */
  async function asleep({ states = 1, fired = 1 } = {}): Promise<Registration> {
    const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
    const { deviceAuthUuid } = registration;
    const body = { deviceAuthUuids: [deviceAuthUuid], purposes: [tour(states)] };
    await app.call('POST', '/v2/devices/profile', body);
    const device = await connectDevice(registration);
    for (let n = 0; n < fired; n += 1)
      await device.publish('up/measurements', { sId: '0x01', val: n });
    await device.end();
    return registration;
  }

  /** What arrives on `down/display` before an error that is provoked afterwards. */
  async function wake(
    registration: Registration,
    { qos = 1, isMute = false }: { qos?: 0 | 1; isMute?: boolean } = {},
  ) {
    const { host, port, deviceAuthUuid: uuid, deviceAuthToken: password } = registration;
    const options = { username: uuid, password, reconnectPeriod: 0 };
    const client = await connectAsync(`mqtt://${host}:${port}`, options);
    // mqtt.js acknowledges when this callback is called.
    if (isMute)
      client.handleMessage = ({ topic }, done) => void (topic.endsWith('/display') || done());
    const texts: { text: string; ts: number }[] = [];
    const flags: boolean[] = [];
    const read = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    client.on('message', (topic, payload, packet) => {
      if (topic.endsWith('/errors')) return ended.resolve();
      if (topic.endsWith('/state')) return read.resolve();
      texts.push(JSON.parse(String(payload)) as (typeof texts)[number]);
      flags.push(packet.retain);
    });
    const down = `devices/${uuid}/down`;
    const filters = ['display', 'state', 'errors'].map((topic) => `${down}/${topic}`);
    await client.subscribeAsync(filters, { qos });
    return {
      client,
      flags,
      texts,
      async finish() {
        // The state and the texts are read together.
        await read.promise;
        await client.publishAsync(`devices/${uuid}/up/state`, '{}', { qos: 1 });
        await ended.promise;
        await client.endAsync();
        return texts.map(({ text }) => text);
      },
    };
  }
  const textsOf = async (registration: Registration) => (await wake(registration)).finish();
  const countKept = async ({ deviceAuthUuid }: Registration) => {
    const { rows } = await db.query<{ count: string }>(
      `select count(*) from kept_display
         join device d on d.id = device_id where d.uuid = $1`,
      [deviceAuthUuid],
    );
    return Number(rows[0]?.count);
  };

  it('are delivered when it subscribes, and not again once it has acknowledged them', async () => {
    const registration = await asleep();
    const awake = await wake(registration);
    expect(await awake.finish()).toEqual(['text 1']);
    expect(awake.flags).toEqual([false]);
    expect(awake.texts).toEqual([{ text: 'text 1', ts: expect.any(Number) }]);
    await expect.poll(() => countKept(registration)).toBe(0);
    expect(await textsOf(registration)).toEqual([]);
  });

  it('are delivered again until there is a PUBACK', async () => {
    const registration = await asleep();
    for (let n = 0; n < 2; n += 1) {
      const mute = await wake(registration, { isMute: true });
      await expect.poll(() => mute.texts.length).toBe(1);
      await mute.client.endAsync(true);
    }
    expect(await textsOf(registration)).toEqual(['text 1']);
  });

  it('count as acknowledged when they are written, if it subscribed with QoS 0', async () => {
    const registration = await asleep();
    expect(await (await wake(registration, { qos: 0 })).finish()).toEqual(['text 1']);
    await expect.poll(() => countKept(registration)).toBe(0);
  });

  it('are the newest of each state, at most ten, the oldest first', async () => {
    const twice = await asleep({ states: 3, fired: 4 });
    expect(await textsOf(twice)).toEqual(['text 2', 'text 3', 'text 1']);
    const many = await asleep({ states: 12, fired: 12 });
    expect(await textsOf(many)).toEqual(Array.from({ length: 10 }, (_, n) => `text ${n + 3}`));
  });

  it('are kept for a day', async () => {
    const registration = await asleep({ states: 2, fired: 2 });
    await db.query(
      `update kept_display set kept_at = now() - interval '25 hours'
        where st_id = 1 and device_id = (select id from device where uuid = $1)`,
      [registration.deviceAuthUuid],
    );
    expect(await textsOf(registration)).toEqual(['text 2']);
  });

  it('are not kept if its backlog brings them from another day', async () => {
    const registration = await asleep({ fired: 0 });
    const device = await connectDevice(registration);
    const ts = Date.now() - 25 * 3_600_000;
    await device.publish('up/measurements', { sId: '0x01', val: 1, ts });
    await device.end();
    expect(await countKept(registration)).toBe(0);
  });

  it('are not kept for one that is connected and acknowledges them', async () => {
    const registration = await asleep({ fired: 0 });
    const device = await connectDevice(registration);
    await device.subscribe('down/display');
    await device.publish('up/measurements', { sId: '0x01', val: 1 });
    expect(await device.receive('down/display')).toMatchObject({ text: 'text 1' });
    await expect.poll(() => countKept(registration)).toBe(0);
    await device.end();
  });

  it('count towards what the account has stored', async () => {
    const used = async () => {
      type Usage = { usage: { quota: string; used: number }[] };
      const { usage } = await app.call<Usage>('GET', '/v2/accounts/usage');
      return usage.find(({ quota }) => quota === 'storedBytes')?.used ?? 0;
    };
    const registration = await asleep({ states: 2, fired: 2 });
    const before = await used();
    await db.query('truncate kept_display');
    expect(before - (await used())).toBeGreaterThanOrEqual(2 * 'text 1'.length);
    expect(await textsOf(registration)).toEqual([]);
  });
});
