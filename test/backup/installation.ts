import { expect, vi } from 'vitest';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { configuration, send, thresholdPurpose, type Registration } from '../journeys/app.ts';
import { connectDevice, type TestDevice } from '../journeys/device.ts';

const day = 86_400_000;
const credentials = { email: 'ann@example.org', password: 'correct horse battery' };

/** Two warm measurements in a row send an SMS and a push, and move the device. */
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
            sms: { text: 'Open the window', phoneNumber: ['+420111'] },
            engine: { gotoStId: 2 },
          },
          causes: [{ sId: '0x01', threshold: { count: 2 }, thresholds: { isGt: 30 } }],
        },
      ],
    },
    { stId: 2, events: [] },
  ],
};

/** A small but complete installation, and what its owner keeps. */
export type Installation = {
  token: string;
  purposeUuid: string;
  pIds: string[];
  alarmIds: string[];
  jobId: string;
  commandId: string;
  backtestId: string;
  /** One device has fired, one needs one more measurement to fire, and one has a profile that waits for it. */
  fired: Registration;
  halfWay: Registration;
  waiting: Registration;
  /** The position of a reader of the account's events who saw all but the last one. */
  lastEventId: string;
  /** The time of the last one. */
  unseenTs: number;
};

export async function call<T = Record<string, unknown>>(
  url: string,
  method: string,
  path: string,
  { token, body }: { token?: string; body?: unknown } = {},
): Promise<T> {
  const response = await send(url + path, method, body, token);
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${method} ${path}: ${text}`);
  return JSON.parse(text) as T;
}

/** Creates it by REST and MQTT, as people and devices do. */
export async function install(url: string): Promise<Installation> {
  await call(url, 'POST', '/v2/accounts', { body: credentials });
  const { accountAuthToken: token } = await call<{ accountAuthToken: string }>(
    url,
    'POST',
    '/v2/accounts/login',
    { body: credentials },
  );
  const post = <T>(path: string, body: unknown) => call<T>(url, 'POST', path, { token, body });
  const profile = async ({ deviceAuthUuid }: Registration) => {
    const body = { deviceAuthUuids: [deviceAuthUuid], purposes: [purpose] };
    return (await post<{ pId: string }>('/v2/devices/profile', body)).pId;
  };
  await call(url, 'PUT', '/v2/accounts', {
    token,
    body: { name: 'Ann', apn: [{ token: 'abcdef01' }] },
  });
  const { purposeUuid } = await post<{ purposeUuid: string }>(
    '/v2/purposes',
    thresholdPurpose(3, 7),
  );
  const changed = `/v2/purposes/${purposeUuid}?reason=warmer`;
  await call(url, 'PUT', changed, { token, body: thresholdPurpose(3, 8) });
  const register = () => post<Registration>('/v2/devices', configuration);
  const [fired, halfWay, waiting, removed] = [
    await register(),
    await register(),
    await register(),
    await register(),
  ];
  await call(url, 'DELETE', `/v2/devices/${removed.deviceAuthUuid}`, { token });
  for (const { deviceAuthUuid } of [fired, halfWay, waiting]) {
    const body = { ...configuration, device: { ...configuration.device, hwVersion: 'second' } };
    const path = `/v2/devices/${deviceAuthUuid}/configuration?reason=soldered`;
    await call(url, 'PUT', path, { token, body });
  }
  const now = Date.now();
  await expect(connectDevice({ ...fired, deviceAuthToken: 'wrong' })).rejects.toThrow('refused');
  const first = await connectDevice(fired);
  await first.publish('up/measurements', oldMeasurements(now));
  const pIds = [await profile(fired), await profile(halfWay)];
  await fire(first, now);
  await first.publish('up/measurements', { sId: '0x01', val: 900, ts: now + 5 });
  // It comes late.
  await first.publish('up/measurements', { sId: '0x01', val: 12, ts: now - 60_000 });
  const lastEventId = await readEventId(url, token);
  await first.publish('up/state', { puId: 1, stId: 1, ts: now + 60_000 });
  await first.end();
  const second = await connectDevice(halfWay);
  await second.publish('up/measurements', { sId: '0x01', val: 31, ts: now });
  await second.end();
  // It comes last: a device that never connects does not answer it.
  pIds.push(await profile(waiting));
  // Presence is written with a delay: when a device was last seen, and that it disconnected.
  const areGone = async () => {
    const { devices } = await call<{
      devices: { uuid: string; connected: boolean; lastSeenTs: number | null }[];
    }>(url, 'GET', '/v2/devices', { token });
    const gone = devices.filter((each) => !each.connected && each.lastSeenTs !== null);
    expect(gone.map(({ uuid }) => uuid).toSorted()).toEqual(
      [fired, halfWay].map((each) => each.deviceAuthUuid).toSorted(),
    );
  };
  await vi.waitFor(areGone, { timeout: 60_000 });
  const isRefusalKept = async () => {
    const path = `/v2/devices/${fired.deviceAuthUuid}/refused-logins`;
    const kept = await call<{ refusedLogins: unknown[] }>(url, 'GET', path, { token });
    expect(kept.refusedLogins).toHaveLength(1);
  };
  await vi.waitFor(isRefusalKept, { timeout: 60_000 });
  const labelling = {
    action: 'label',
    labels: ['old'],
    deviceAuthUuids: [waiting.deviceAuthUuid],
  };
  const { jobId } = await post<{ jobId: string }>('/v2/devices/actions', labelling);
  const isDone = async () => {
    const { state } = await call<{ state: string }>(url, 'GET', `/v2/jobs/${jobId}`, { token });
    expect(state).toBe('done');
  };
  await vi.waitFor(isDone, { timeout: 60_000 });
  const commands = `/v2/devices/${fired.deviceAuthUuid}/commands`;
  const { commandId } = await post<{ commandId: string }>(commands, { name: 'restart' });
  const { alarms } = await call<{ alarms: { alarmId: number }[] }>(url, 'GET', '/v2/alarms', {
    token,
  });
  const alarmIds = alarms.map(({ alarmId }) => String(alarmId));
  expect(alarmIds).not.toEqual([]);
  const unseenTs = now + 60_000;
  const playing = {
    candidate: { purposeUuids: [purposeUuid] },
    devices: [fired.deviceAuthUuid],
    start: Date.now() - day,
  };
  const { backtestId } = await post<{ backtestId: string }>('/v2/backtests', playing);
  const isPlayed = async () => {
    const path = `/v2/backtests/${backtestId}`;
    const { state } = await call<{ state: string }>(url, 'GET', path, { token });
    expect(state).toBe('done');
  };
  await vi.waitFor(isPlayed, { timeout: 60_000 });
  const ids = { purposeUuid, pIds, alarmIds, jobId, backtestId, commandId, lastEventId };
  return { token, ...ids, fired, halfWay, waiting, unseenTs };
}

/** Numbers, positions and values that share a millisecond; some of them long past. */
function oldMeasurements(now: number) {
  return Array.from({ length: 60 }, (_, i) => ({
    sId: i % 3 === 0 ? '0x02' : '0x01',
    val: i % 6 === 0 ? { lat: 50.1 + i / 1e9, long: -14.3 } : 0.1 + i / 3,
    ts: now - (60 - (i % 30) * 2) * day - 1,
  }));
}

async function fire(device: TestDevice, ts: number): Promise<void> {
  await device.publish('up/measurements', { sId: '0x01', val: 31, ts });
  await device.publish('up/measurements', { sId: '0x01', val: 32.5, ts: ts + 1 });
}

/** The id with which a new stream begins. */
async function readEventId(url: string, token: string): Promise<string> {
  const abort = new AbortController();
  const { body } = await fetch(`${url}/v2/events/stream`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: abort.signal,
  });
  if (!body) throw new Error('The stream has no body.');
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    const id = /^id: (.+)$/m.exec(chunk)?.[1];
    abort.abort();
    if (id) return id;
  }
  throw new Error('The stream has no id.');
}

/** Members that change with each request, with time, or from one start to the next. */
const passing = new Set(['timestamp', 'lastUsedTs', 'expiresTs', 'port']);
/** A delivery continues during the comparison. */
const delivered = new Set(['state', 'attempts', 'error', 'via', 'reason', 'changedTs']);

/** The answers of all GET routes, for every device and in several forms. */
export async function readAnswers(url: string, at: Installation): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {};
  for (const path of listPaths(at)) {
    const headers = { Authorization: `Bearer ${at.token}` };
    const response = await fetch(url + path, { headers });
    if (!response.ok) throw new Error(`${response.status} ${path}: ${await response.text()}`);
    const left = path.endsWith('/notifications') ? new Set([...passing, ...delivered]) : passing;
    answers[path] = JSON.parse(await response.text(), function (key, value: unknown) {
      const isTop = typeof this === 'object' && !('type' in this) && !('notificationId' in this);
      return left.has(key) && (key !== 'timestamp' || isTop) ? undefined : value;
    }) as unknown;
  }
  return answers;
}

const formOf: Record<string, string[]> = {
  '/v2/measurements/{deviceAuthUuid}': [
    '',
    '?senses=0x01',
    '?limit=7',
    ...['1h', '1d', '7m'].map(inBuckets),
  ],
  '/v2/purposes/{purposeUuid}/diff': ['?from=1&to=2'],
  '/v2/devices/{deviceAuthUuid}/configuration/diff': ['?from=1&to=2'],
  '/v2/events/{deviceAuthUuid}': ['', '?type=sense', '?senses=0x01', '?type=device&limit=1'],
};

function inBuckets(width: string): string {
  const now = Date.now();
  const days = width === '7m' ? 3 : 80;
  return `?bucket=${width}&senses=0x01&start=${now - days * day}&end=${now + day}`;
}

function listPaths(at: Installation): string[] {
  const { fired, halfWay, waiting } = at;
  const values: Record<string, string[]> = {
    deviceAuthUuid: [fired, halfWay, waiting].map((each) => each.deviceAuthUuid),
    pId: at.pIds,
    purposeUuid: [at.purposeUuid],
    alarmId: at.alarmIds,
    jobId: [at.jobId],
    commandId: [at.commandId],
    backtestId: [at.backtestId],
    version: ['1'],
  };
  return listDocumentedRoutes()
    .filter(({ method, path, streams }) => method === 'get' && !streams && path.startsWith('/v2/'))
    .flatMap(({ path }) => {
      let found = [path];
      for (const [all, name = ''] of path.matchAll(/\{(\w+)\}/g)) {
        const isOfCommand = name === 'deviceAuthUuid' && path.includes('{commandId}');
        const named = isOfCommand ? [fired.deviceAuthUuid] : values[name];
        if (!named) throw new Error(`${path}: nobody says what ${name} is here.`);
        found = found.flatMap((each) => named.map((value) => each.replace(all, value)));
      }
      return found.flatMap((each) => (formOf[path] ?? ['']).map((form) => each + form));
    });
}
