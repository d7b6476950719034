import { afterAll, beforeAll, expect, it } from 'vitest';
import { runOn } from '../support/template.ts';
import { configuration, openApp, type App, type Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService, type TestService } from './service.ts';

let service: TestService;
beforeAll(async () => void (service = await testService()));
afterAll(() => service.close());

const listed = async (app: App, { deviceAuthUuid }: Registration) => {
  const path = `/v2/measurements/${deviceAuthUuid}`;
  return (await app.call<{ measurements: unknown[] }>('GET', path)).measurements;
};

it('a server that takes over without the last commits is asked again whose a measurement is', async () => {
  const app = await openApp(service.url);
  const register = () => app.call<Registration>('POST', '/v2/devices', configuration);
  const [mine, other] = [await register(), await register()];
  const device = await connectDevice(mine);
  const now = Date.now();
  const measure = (val: number) =>
    device.publish('up/measurements', { sId: '0x01', val, ts: now + val });
  // The first adds the series, the second looks it up, the third remembers it.
  for (const val of [1, 2, 3]) await measure(val);
  expect(await listed(app, mine)).toHaveLength(3);

  // What an asynchronous standby had not received is gone, and its numbers are given to others.
  await runOn(service.databaseUrl, async (client) => {
    await client.query('delete from measurement');
    const { rows } = await client.query<{ id: string }>('delete from series returning id');
    await client.query(
      `insert into series (id, device_id, s_id) overriding system value
       select $1, id, '0x01' from device where uuid = $2`,
      [rows[0]?.id, other.deviceAuthUuid],
    );
    await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()`,
    );
  });
  await measure(4);
  await device.end();

  expect(await listed(app, mine)).toEqual([{ sId: '0x01', val: 4, ts: now + 4 }]);
  expect(await listed(app, other)).toEqual([]);
});
