import { connectDevice, type TestDevice } from '../journeys/device.ts';
import type { Registration } from '../journeys/app.ts';
import { makeAccount, person, type TestService } from './service.ts';

/** What a hostile device calls itself: shown as text wherever it stands. */
export const hostile = '<img src=x onerror=alert(1)>';

export type Filled = {
  uuids: Record<'boxes' | 'hive' | 'hostile', string>;
  close(): Promise<void>;
};

const minuteMs = 60_000;

export const box = (name: string, serial: string) => ({
  device: { name, serial, swVersion: '1.4.2' },
  module: [
    {
      moduleId: 'climate',
      senses: [
        { sId: '0x10', min: -40, max: 85, name: 'Temperature', unit: '°C', decimals: 1 },
        { sId: '0x11', min: 0, max: 100, name: 'Humidity', unit: '%', decimals: 0 },
      ],
    },
  ],
});

export const purpose = {
  puId: 1,
  name: 'Cold room',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'watched',
      events: [
        {
          evId: 1,
          name: 'Too warm',
          eventLog: true,
          actions: { cloud: { sendEvent: true }, alarm: true },
          causes: [{ sId: '0x10', orderId: 1, threshold: { count: 2 }, thresholds: { isGt: 8 } }],
        },
        {
          evId: 2,
          name: 'Too humid',
          eventLog: true,
          actions: { cloud: { sendEvent: true }, alarm: true },
          causes: [{ sId: '0x11', orderId: 1, threshold: { count: 3 }, thresholds: { isGt: 90 } }],
        },
      ],
    },
  ],
};

/** An account with devices: one that is warm and rings, one that is wrong, one that never came. */
export async function fill({ url }: TestService): Promise<Filled> {
  const token = await makeAccount(url);
  const call = async <T>(method: string, path: string, body: unknown): Promise<T> => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return (await response.json()) as T;
  };
  await call('PUT', '/v2/accounts', { timeZone: 'Europe/Berlin', language: 'en' });
  const register = (body: unknown) => call<Registration>('POST', '/v2/devices', body);
  const names = ['Cold room 2', 'Cold room 3', 'Dispatch, ramp 4', 'Van 12', 'Laboratory fridge'];
  for (const [place, name] of names.entries()) await register(box(name, `CR-10${place + 2}`));
  const warm = await register(box('Cold room 1', 'CR-101'));
  const hive = await register(box('Hive at the lime tree', ''));
  const odd = await register({ ...box(hostile, ''), module: [] });
  const uuid = warm.deviceAuthUuid;
  await call('PUT', `/v2/devices/${uuid}/labels`, { labels: ['cold chain', 'ground floor'] });
  await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [purpose] });
  const devices = await Promise.all([warm, hive, odd].map(connectDevice));
  const [first, second, third] = devices as [TestDevice, TestDevice, TestDevice];
  await acceptProfile(first);
  await publishHistory(first);
  await second.publish('up/measurements', { sId: '0x10', val: 34.8 });
  await third.publish('up/measurements', { sId: '0x99', val: 1, note: hostile });
  await second.end();
  return {
    uuids: { boxes: uuid, hive: hive.deviceAuthUuid, hostile: odd.deviceAuthUuid },
    close: async () => void (await Promise.all([first.end(), third.end()])),
  };
}

/** The service evaluates once the device has taken the profile. */
export async function acceptProfile(device: TestDevice): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<{ pId: string }>();
  device.client.on('message', (topic, payload) => {
    if (topic.endsWith('down/profile')) resolve(JSON.parse(payload.toString()) as { pId: string });
  });
  await device.subscribe('down/#');
  const { pId } = await promise;
  await device.publish('up/profile', { pId, state: 'current' });
}

/** A day that warms up at its end, with an hour in which nothing was heard. */
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

export { person };
