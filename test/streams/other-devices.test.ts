import { afterAll, beforeAll, expect, test } from 'vitest';
import { thresholdPurpose } from '../journeys/app.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { addDevice, openAccount, openStream } from './readers.ts';

const sense = '0x01';

let service: TestService;

beforeAll(async () => {
  service = await testService();
});
afterAll(async () => {
  await service?.close();
});

test('measurements can cover fewer devices than events, and another address resumes', async () => {
  const { app } = await openAccount(service.url);
  const [shown, other] = [await addDevice(app), await addDevice(app)];
  const purpose = thresholdPurpose(1, 30);
  const body = { deviceAuthUuids: [shown.uuid, other.uuid], purposes: [purpose] };
  await app.call('POST', '/v2/devices/profile', body);
  const kinds = ['events', 'measurements'];
  const { url } = await app.call<{ url: string }>('POST', '/v2/streams', {
    kinds,
    filters: { measurementDevices: [shown.uuid] },
  });
  const stream = await openStream(service.url + url, null);
  await other.publish('up/measurements', { sId: sense, val: 31 });
  await shown.publish('up/measurements', { sId: sense, val: 2 });
  expect(await stream.untilValues(1)).toEqual([[sense, 2]]);
  const [event] = await stream.untilNamed('event', 1);
  expect(event).toMatchObject({ deviceAuthUuid: other.uuid });
  stream.close();
  await shown.publish('up/measurements', { sId: sense, val: 3 });
  await other.publish('up/measurements', { sId: sense, val: 4 });
  const filters = { measurementDevices: [shown.uuid, other.uuid] };
  const next = await app.call<{ url: string }>('POST', '/v2/streams', {
    kinds,
    filters,
    lastEventId: stream.lastId(),
  });
  const resumed = await openStream(service.url + next.url, null);
  expect(resumed.named('opened')).toMatchObject([{ resumed: true }]);
  await expect
    .poll(() => resumed.values(), { timeout: 60_000 })
    .toEqual(
      expect.arrayContaining([
        [sense, 3],
        [sense, 4],
      ]),
    );
  resumed.close();
});

test('unknown devices, and an id of no stream, are refused when the address is created', async () => {
  const { token } = await openAccount(service.url);
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const post = (asked: object) =>
    fetch(`${service.url}/v2/streams`, { method: 'POST', headers, body: JSON.stringify(asked) });
  const kinds = ['measurements'];
  const missing = { measurementDevices: [crypto.randomUUID()] };
  expect((await post({ kinds, filters: missing })).status).toBe(404);
  expect((await post({ kinds, lastEventId: 'x=1' })).status).toBe(400);
});
