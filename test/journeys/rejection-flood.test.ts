import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runOn } from '../support/template.ts';
import { configuration, openApp } from './app.ts';
import type { App, Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService } from './service.ts';
import type { TestService } from './service.ts';

type Rejections = { rejections: { more?: number; payload: string }[] };

const messages = 100;
const wrong = { cause: { engine: { pId: 'p', puId: 1, stId: 1, evId: 1, ts: 1 }, senses: 0 } };

describe('a device that sends what is wrong', () => {
  let service: TestService;
  let app: App;
  beforeAll(async () => {
    // At the usual rates a device would take minutes for it.
    const fast = { messagesPerSecond: 1e6, messagesBurst: 1e6, measurementsPerSecond: 1e9 };
    service = await testService(
      {},
      { change: (config) => ({ ...config, mqtt: { ...config.mqtt, ...fast } }) },
    );
    app = await openApp(service.url);
  });
  afterAll(() => service.close());

  /** The size of the table with its indexes, without dead rows. */
  const measure = () =>
    runOn(service.databaseUrl, async (client) => {
      await client.query('vacuum rejection');
      const { rows } = await client.query<{ bytes: string }>(
        `select pg_total_relation_size('rejection') as bytes`,
      );
      return Number(rows[0]?.bytes);
    });

  it.each([
    ['up/measurements', Array.from({ length: 1_000 }, () => 1)],
    ['up/measurements', Array.from({ length: 700 }, (_, n) => ({ sId: `no sense ${n}`, val: n }))],
    ['up/events', Array.from({ length: 600 }, () => wrong)],
  ])('on %s grows the tables by less than five times what it sent', async (topic, items) => {
    const device = await connectDevice(
      await app.call<Registration>('POST', '/v2/devices', configuration),
    );
    const before = await measure();
    for (let n = 0; n < messages; n += 1) await device.publish(topic, items);
    const grown = (await measure()) - before;
    expect(grown).toBeLessThan(5 * messages * JSON.stringify(items).length);
    const path = `/v2/devices/${device.uuid}/rejections`;
    const { rejections } = await app.call<Rejections>('GET', `${path}?limit=200`);
    // Up to sixty rows a minute are kept singly, ten of a message. The test may span two minutes.
    const oneByOne = rejections.filter(({ more }) => more === undefined);
    expect(oneByOne.length).toBeLessThanOrEqual(120);
    const counted = rejections.reduce((sum, { more = 1 }) => sum + more, 0);
    expect(counted).toBe(messages * items.length);
    for (const { payload } of rejections) expect(JSON.stringify(items)).toContain(payload);
    await device.end();
  });
});
