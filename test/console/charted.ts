import { connectDevice, type TestDevice } from '../journeys/device.ts';
import type { Registration } from '../journeys/app.ts';
import { acceptProfile } from './filled.ts';
import { makeAccount, type TestService } from './service.ts';

export type Charted = {
  uuid: string;
  /** Another device, which measured one value. */
  beside: string;
  /** The time of the newest value, ms. */
  endTs: number;
  publish: (...values: object[]) => Promise<void>;
  close: () => Promise<void>;
};

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const days = 90;

const configuration = {
  device: { name: 'Van 12', serial: 'V-12' },
  module: [
    {
      moduleId: 'box',
      senses: [
        { sId: '0x10', min: -40, max: 85, name: 'Temperature', unit: '°C', decimals: 1 },
        { sId: '0x11', min: 0, max: 1, name: 'Door open', decimals: 0 },
        { sId: '0x12', name: 'Position' },
      ],
    },
  ],
};

const area = [
  { lat: 52.4, long: 13.2 },
  { lat: 52.4, long: 13.6 },
  { lat: 52.6, long: 13.6 },
  { lat: 52.6, long: 13.2 },
];
const actions = { cloud: { sendEvent: true } };
const cause = (sId: string, thresholds: object) => ({
  sId,
  orderId: 1,
  threshold: { count: 1 },
  thresholds,
});

/** Two states that it moves between, and an area. */
const purpose = {
  puId: 1,
  name: 'Cold chain',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'cold',
      events: [
        {
          evId: 1,
          name: 'Too warm',
          eventLog: true,
          actions: { ...actions, alarm: true, engine: { gotoStId: 2 } },
          causes: [cause('0x10', { isGt: 8 })],
        },
        {
          evId: 2,
          name: 'In Berlin',
          eventLog: true,
          actions,
          causes: [cause('0x12', { isInsideGeo: area })],
        },
      ],
    },
    {
      stId: 2,
      name: 'warm',
      events: [
        {
          evId: 3,
          name: 'Cold again',
          eventLog: true,
          actions: { ...actions, engine: { gotoStId: 1 } },
          causes: [cause('0x10', { isLt: 6 })],
        },
      ],
    },
  ],
};

/** A device with 90 days of history, a value a minute, that was warm for two of the last hours. */
export async function openCharted({ url }: TestService): Promise<Charted> {
  const token = await makeAccount(url);
  const call = async <T>(method: string, path: string, body: string, type: string): Promise<T> => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': type };
    const response = await fetch(url + path, { method, headers, body });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return (await response.json()) as T;
  };
  const send = <T>(method: string, path: string, body: unknown) =>
    call<T>(method, path, JSON.stringify(body), 'application/json');
  await send('PUT', '/v2/accounts', { timeZone: 'Europe/Berlin', language: 'en' });
  const registration = await send<Registration>('POST', '/v2/devices', configuration);
  const { deviceAuthUuid: uuid } = registration;
  await send('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [purpose] });
  const device = await connectDevice(registration);
  await acceptProfile(device);
  const endTs = Math.floor(Date.now() / minuteMs) * minuteMs;
  const lines = history(uuid, endTs).map((line) => JSON.stringify(line));
  await call('POST', '/v2/measurements/import', lines.join('\n'), 'application/x-ndjson');
  await publishHours(device, endTs);
  const named = { ...configuration, device: { name: 'Van 13' } };
  const other = await send<Registration>('POST', '/v2/devices', named);
  const value = { deviceAuthUuid: other.deviceAuthUuid, sId: '0x10', ts: endTs - hourMs, val: 7.7 };
  await call('POST', '/v2/measurements/import', JSON.stringify(value), 'application/x-ndjson');
  return {
    uuid,
    beside: other.deviceAuthUuid,
    endTs,
    publish: async (...values) => void (await device.publish('up/measurements', values)),
    close: () => device.end(),
  };
}

/** Up to four hours ago; two hours are missing, beginning ten hours ago. */
function history(uuid: string, endTs: number): object[] {
  const lines: object[] = [];
  const of = (sId: string, ts: number, what: object) =>
    lines.push({ deviceAuthUuid: uuid, sId, ts, ...what });
  for (let minute = days * 1_440; minute > 240; minute -= 1) {
    if (minute > 480 && minute < 600) continue;
    const ts = endTs - minute * minuteMs;
    const wave = Math.sin(minute / 229) + 0.4 * Math.sin(minute / 7);
    const value = { val: Math.round((4 + wave) * 10) / 10 };
    of('0x10', ts, value);
    // More rows in six hours than a table shows, even if a test is late.
    if (minute < 480) of('0x10', ts + minuteMs / 2, value);
    if (minute % 10 === 0) of('0x11', ts, { val: minute % 190 < 20 ? 1 : 0 });
    if (minute % 60 === 0) of('0x12', ts, { lat: 52.5 + wave / 20, long: 13 + minute / 100_000 });
  }
  return lines;
}

/** The last four hours, sent by the device: these are evaluated. */
async function publishHours(device: TestDevice, endTs: number): Promise<void> {
  const values = Array.from({ length: 80 }, (_, place) => {
    const ts = endTs - (240 - place * 3) * minuteMs;
    const isWarm = place > 20 && place < 60;
    return { sId: '0x10', val: isWarm ? 9 + (place % 3) / 10 : 4.2, ts };
  });
  for (let from = 0; from < values.length; from += 20)
    await device.publish('up/measurements', values.slice(from, from + 20));
  const at = (minutes: number, lat: number, long: number) => ({
    sId: '0x12',
    val: { lat, long },
    ts: endTs - minutes * minuteMs,
  });
  await device.publish('up/measurements', [at(120, 52.35, 13.1), at(60, 52.5, 13.4)]);
  await device.publish('up/measurements', { sId: '0x11', val: 1, ts: endTs - 90 * minuteMs });
}
