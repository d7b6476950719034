import { afterAll, beforeAll, expect, test } from 'vitest';
import { addDevice, type Freezer, type House, openHouse, send, tooWarm } from '../alarms/house.ts';
import { ask, openAccount } from '../idempotency/repeat.ts';
import { configuration, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';

const ends: (() => Promise<unknown>)[] = [];
let house: House;
beforeAll(async () => void (house = await openHouse(ends)));
afterAll(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

type Listed = {
  pId: string;
  purposes: { puId: number; name?: string }[];
  devices: number;
  pending: number;
  refused: number;
  firstInstalledTs: number;
  lastInstalledTs: number;
};

const get = <T>(path: string) => house.app.call<T>('GET', path);
const listed = async () => (await get<{ profiles: Listed[] }>('/v2/profiles')).profiles;
const found = async (query: string) => {
  const { devices, counts } = await get<{ devices: { uuid: string }[]; counts: object }>(
    `/v2/devices?sort=registeredTs&counts=true&${query}`,
  );
  expect(counts).toMatchObject({ matching: devices.length });
  return devices.map(({ uuid }) => uuid);
};
const pIdOf = async ({ uuid }: Freezer) => {
  const { profiles } = await get<{ profiles: { pId: string }[] }>(`/v2/devices/${uuid}`);
  return profiles[0]?.pId ?? '';
};
const kitchen = tooWarm({}, { causes: [{ sId: '0x01', thresholds: { isGt: 5 } }] });
const install = (uuid: string, purposes: object[]) =>
  house.app.call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes });

test('says which profile is on how many devices, and finds those', async () => {
  const one = await addDevice(house, [tooWarm()]);
  const two = await addDevice(house, [tooWarm()]);
  const other = await addDevice(house, [{ ...kitchen, name: 'kitchen' }]);
  const none = await house.app.call<{ deviceAuthUuid: string }>('POST', '/v2/devices', {
    device: {},
    module: [],
  });
  await send(one, 3);
  await send(two, 3);
  const [newest, oldest, ...more] = await listed();
  expect(more).toEqual([]);
  expect(newest).toMatchObject({
    pId: await pIdOf(other),
    purposes: [{ puId: 1, name: 'kitchen' }],
    devices: 0,
    pending: 1,
    refused: 0,
  });
  const samePId = await pIdOf(one);
  expect(oldest).toMatchObject({
    pId: await pIdOf(two),
    purposes: [{ puId: 1, name: 'freezer' }],
    devices: 2,
    pending: 0,
  });
  expect(oldest?.lastInstalledTs).toBeGreaterThan(oldest?.firstInstalledTs ?? Infinity);
  expect(await found(`profile=${samePId}`)).toEqual([one.uuid, two.uuid]);
  expect(await found(`profile=${await pIdOf(other)}`)).toEqual([other.uuid]);
  expect(await found(`profile=${crypto.randomUUID()}`)).toEqual([]);
  expect(await found('purpose=freezer')).toEqual([one.uuid, two.uuid]);
  expect(await found('purpose=kitchen')).toEqual([other.uuid]);
  expect(await found('purpose=kit')).toEqual([]);
  expect(await found('profile=none')).toEqual([none.deviceAuthUuid]);
  const purposes = await get<Listed>(`/v2/profiles/${samePId}`);
  expect(purposes).toMatchObject({ pId: samePId, purposes: [{ puId: 1, name: 'freezer' }] });
  const { currentProfile } = await get<{ currentProfile: Listed }>(
    `/v2/devices/${one.uuid}/configuration`,
  );
  expect(currentProfile.purposes).toEqual(purposes.purposes);

  // In pages.
  const pIds = (body: unknown) => (body as { profiles: Listed[] }).profiles.map(({ pId }) => pId);
  const first = await house.app.page('/v2/profiles?limit=1');
  expect(pIds(first.body)).toEqual([newest?.pId]);
  const second = await house.app.page(first.next ?? '');
  expect([pIds(second.body), second.next]).toEqual([[oldest?.pId], undefined]);

  // Nothing of another account.
  const { url } = house.service;
  const token = await openAccount(url);
  const foreign = (path: string) => ask(url, { method: 'GET', path, token });
  expect((await foreign('/v2/profiles')).body['profiles']).toEqual([]);
  expect((await foreign(`/v2/profiles/${samePId}`)).status).toBe(404);

  // What a device has refused counts until it is given another.
  await other.device.publish('up/profile', { pId: await pIdOf(other), state: 'rejected' });
  await expect.poll(async () => (await listed())[0]).toMatchObject({ pending: 0, refused: 1 });
  await install(other.uuid, [tooWarm()]);
  expect(
    (await listed()).map(({ devices, pending, refused }) => [devices, pending, refused]),
  ).toEqual([[2, 1, 0]]);
});

test('a device whose profile has no purposes any more counts as one without a profile', async () => {
  const registration = await house.app.call<Registration>('POST', '/v2/devices', configuration);
  const { deviceAuthUuid: uuid } = registration;
  const device = await connectDevice(registration);
  ends.push(device.end);
  const measure = (val: number) => device.publish('up/measurements', { sId: '0x01', val });
  const act = async (action: object) => {
    const { jobId } = await house.app.call<{ jobId: string }>(
      'POST',
      '/v2/devices/actions',
      action,
    );
    const state = async () => (await get<{ state: string }>(`/v2/jobs/${jobId}`)).state;
    await expect.poll(state).toBe('done');
    return jobId;
  };
  const jobId = await act({ action: 'profile', purposes: [tooWarm()], deviceAuthUuids: [uuid] });
  await measure(20);
  expect(await found('profile=current')).toContain(uuid);
  expect(await found('alarm=open')).toContain(uuid);
  await act({ action: 'restore', jobId });
  expect(await found('profile=pending')).toContain(uuid);
  await measure(1);
  expect(await found('profile=none')).toContain(uuid);
  expect(await found('profile=current')).not.toContain(uuid);
  expect(await found('alarm=open')).not.toContain(uuid);
  const { device: listedDevice } = await get<{ device: { state: object } }>(`/v2/devices/${uuid}`);
  expect(listedDevice.state).toMatchObject({ puId: 0, stId: 0 });
  expect(await get(`/v2/devices/${uuid}/evaluation`)).toMatchObject({ engine: 'service' });
});
