import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectors, startApp, type App } from './app.ts';

let app: App;
beforeAll(async () => void (app = await startApp()));
afterAll(() => app?.close());

test('one device: its entry in the list, its connector and its profiles', async () => {
  const token = await app.account();
  const device = await app.device(token);
  await app.device(token);
  const first = await app.install(token, [device.uuid]);
  const second = await app.install(token, [device.uuid]);
  await app.db.query(
    `update device_profile set state = 'rejected', answer_text = 'no room' where profile_id = $1`,
    [first],
  );
  await app.call('POST', `/v2/devices/${device.uuid}/token`, { token, body: {} });
  const get = (uuid: string, as = token) => app.call('GET', `/v2/devices/${uuid}`, { token: as });
  const { body } = await get(device.uuid);
  const listed = (await app.call('GET', `/v2/devices?search=${device.uuid}`, { token })).body;
  expect([body['device']]).toEqual(listed['devices']);
  const connector = body['connector'] as { connectorId: number; host: string; port: number };
  const { id, host, port } = connectors.find(({ id }) => id === connector.connectorId) ?? {};
  expect(connector).toMatchObject({ connectorId: id, host, port });
  expect(body).toMatchObject({
    previousToken: true,
    profiles: [
      { pId: second, state: 'pending', engine: 'service' },
      { pId: first, state: 'rejected', text: 'no room', installedTs: expect.any(Number) },
    ],
  });
  expect((await get(device.uuid, await app.account())).status).toBe(404);
  expect((await get(randomUUID())).status).toBe(404);
});
