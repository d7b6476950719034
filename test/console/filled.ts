import type { Registration } from '../journeys/app.ts';
import { connectDevice, type TestDevice } from '../journeys/device.ts';
import { box, coldRoom } from './filled-data.ts';
import { makeAccount, person, type TestService } from './service.ts';

/** The name of a hostile device: it must appear as text everywhere. */
export const hostile = '<img src=x onerror=alert(1)>';

export type Filled = {
  uuids: Record<'boxes' | 'hive' | 'hostile' | 'silent', string>;
  close(): Promise<void>;
};

const minuteMs = 60_000;

export type Call = <T>(method: string, path: string, body?: unknown) => Promise<T>;

/** Calls the API as an account; throws if the request is refused. */
export const callAs =
  (url: string, token: string): Call =>
  async <T>(method: string, path: string, body?: unknown) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const json = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(url + path, { method, headers, ...json });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return (await response.json()) as T;
  };

const others = [
  ['Cold room 2', 4.1, 58],
  ['Cold room 3', 3.8, 61],
  ['Dispatch, ramp 4', 6.9, 66],
  ['Van 12', 5.2, 49],
] as const;

/**
 * An account with devices: one that is warm and raises an alarm, some that are well, one that is misconfigured, one
 * that never connected. `isTame`: without a hostile device, for pictures.
 */
export async function fill({ url }: TestService, { isTame = false } = {}): Promise<Filled> {
  const call = callAs(url, await makeAccount(url));
  await call('PUT', '/v2/accounts', {
    timeZone: isTame ? afternoonZone() : 'Europe/Berlin',
    language: 'en',
  });
  const register = (body: unknown) => call<Registration>('POST', '/v2/devices', body);
  const warm = await register(box('Cold room 1', 'CR-101'));
  const well = [];
  for (const [place, [name]] of others.entries())
    well.push(await register(box(name, `CR-10${place + 2}`)));
  const silent = await register(box('Laboratory fridge', 'CR-106'));
  const hive = await register(box('Hive at the lime tree', ''));
  const odd = await register({ ...box(isTame ? 'Orchard' : hostile, ''), module: [] });
  const uuid = warm.deviceAuthUuid;
  await call('PUT', `/v2/devices/${uuid}/labels`, { labels: ['cold chain', 'ground floor'] });
  await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [coldRoom] });
  const devices = await Promise.all([warm, hive, odd, ...well].map(connectDevice));
  const [first, second, third, ...fine] = devices as [TestDevice, TestDevice, TestDevice];
  await acceptProfile(first);
  await publishHistory(first);
  await second.publish('up/measurements', { sId: '0x10', val: 34.8 });
  if (!isTame) await third.publish('up/measurements', { sId: '0x99', val: 1, note: hostile });
  for (const [place, [, temperature, humidity]] of others.entries())
    await (fine as TestDevice[])[place]?.publish('up/measurements', [
      { sId: '0x10', val: temperature },
      { sId: '0x11', val: humidity },
    ]);
  await second.end();
  return {
    uuids: {
      boxes: uuid,
      hive: hive.deviceAuthUuid,
      hostile: odd.deviceAuthUuid,
      silent: silent.deviceAuthUuid,
    },
    close: async () => void (await Promise.all([first, third, ...fine].map((each) => each.end()))),
  };
}

/** The service evaluates once the device has accepted the profile. */
export async function acceptProfile(device: TestDevice): Promise<void> {
  // A hook cannot poll.
  const { promise, resolve } = Promise.withResolvers<{ pId: string }>();
  device.client.on('message', (topic, payload) => {
    if (topic.endsWith('down/profile')) resolve(JSON.parse(payload.toString()) as { pId: string });
  });
  await device.subscribe('down/#');
  const { pId } = await promise;
  await device.publish('up/profile', { pId, state: 'current' });
}

/** A day that gets warmer at its end, with an hour without values. */
async function publishHistory(device: TestDevice): Promise<void> {
  const endTs = Date.now() - minuteMs;
  const points = Array.from({ length: 240 }, (_, place) => {
    const ts = endTs - (240 - place) * 6 * minuteMs;
    const wave = Math.sin(place / 12);
    const late = Math.max(0, place - 228) * 0.5;
    return [
      { sId: '0x10', val: Math.round((4.2 + wave + late) * 10) / 10, ts },
      { sId: '0x11', val: Math.round(62 + 9 * wave), ts },
    ];
  });
  const heard = points.filter((_, place) => place < 120 || place > 130);
  for (let from = 0; from < heard.length; from += 40)
    await device.publish('up/measurements', heard.slice(from, from + 40).flat());
}

/** A zone where it is two in the afternoon: pictures look alike whenever they are made, with all times on one day. */
function afternoonZone(): string {
  const eastHours = 14 - new Date().getUTCHours();
  // The sign in these names is inverted: positive is west of Greenwich.
  return `Etc/GMT${eastHours > 0 ? '-' : '+'}${Math.abs(eastHours)}`;
}

export { person };
