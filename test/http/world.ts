import { configuration, thresholdPurpose, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import type { Operation } from './document.ts';

export type Request = {
  method: string;
  path: string;
  token: string | null;
  body?: unknown;
};

export type Answered = { status: number; headers: Headers; contentType: string; text: string };

/** Sends a request; of a stream that does not end by itself only the head is read. */
export async function send(url: string, request: Request): Promise<Answered> {
  const { method, path, token, body } = request;
  const controller = new AbortController();
  const headers: Record<string, string> = {};
  if (token !== null) headers['authorization'] = `Bearer ${token}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const response = await fetch(url + path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    signal: controller.signal,
  });
  const contentType = response.headers.get('content-type') ?? '';
  const isEndless = contentType.startsWith('text/event-stream');
  const text = isEndless ? '' : await response.text();
  if (isEndless) controller.abort();
  return { status: response.status, headers: response.headers, contentType, text };
}

/** An account with one of everything: what every operation can be tried on. */
export type World = {
  email: string;
  password: string;
  token: string;
  pair: { token: string; refreshToken: string };
  deviceToken: string;
  /** Of a link to set a new password; where mails are sent. */
  resetToken?: string;
  /** Identifiers by the name of the path parameter that takes them. */
  ids: {
    deviceAuthUuid: string;
    purposeUuid: string;
    pId: string;
    id: string;
    alarmId: string;
    keyId: string;
  };
};

export async function buildWorld(url: string): Promise<World> {
  const email = `${crypto.randomUUID()}@example.com`;
  const password = 'correct horse';
  const call = async (method: string, path: string, token: string | null, body?: unknown) => {
    const { status, text } = await send(url, { method, path, token, body });
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  };
  const registered = await call('POST', '/v2/accounts', null, { email, password });
  const token = String(registered['accountAuthToken']);
  const { data } = await call('POST', '/v1/auth/login', null, { email, password });
  const device = await call('POST', '/v2/devices', token, configuration);
  const purpose = await call('POST', '/v2/purposes', token, alarmingPurpose(1, 30));
  const deviceAuthUuid = String(device['deviceAuthUuid']);
  const purposeUuid = String(purpose['purposeUuid']);
  const profile = await call('POST', '/v2/devices/profile', token, {
    deviceAuthUuids: [deviceAuthUuid],
    purposeUuids: [purposeUuid],
  });
  const client = await connectDevice(device as Registration);
  await client.publish('up/measurements', { sId: '0x01', val: 31 });
  await client.end();
  const { alarms } = await call('GET', '/v2/alarms', token);
  const [alarm] = alarms as { alarmId: number }[];
  const key = await call('POST', '/v2/accounts/keys', token, newKey());
  const { sessions } = await call('GET', '/v2/accounts/sessions', token);
  const other = (sessions as { id: string; current: boolean }[]).find(({ current }) => !current);
  return {
    email,
    password,
    token,
    pair: data as World['pair'],
    deviceToken: String(device['deviceAuthToken']),
    ids: {
      deviceAuthUuid,
      purposeUuid,
      pId: String(profile['pId']),
      id: other?.id ?? '',
      alarmId: String(alarm?.alarmId),
      keyId: String(key['keyId']),
    },
  };
}

/** What it fires is kept as an alarm, and nobody is told. */
function alarmingPurpose(puId: number, isGt: number) {
  const { states, ...purpose } = thresholdPurpose(puId, isGt);
  const alarming = states.map(({ events, ...state }) => ({
    ...state,
    events: events.map((event) => ({ ...event, actions: { alarm: true } })),
  }));
  return { ...purpose, states: alarming };
}

const newKey = () => ({ name: 'a wall', scopes: ['data:read'] });
const quiet = () => ({ untilTs: Date.now() + 3_600_000, reason: 'at work on it' });

/** A body each operation accepts, by its name; what is not named takes none. */
const bodies: Record<string, (world: World) => unknown> = {
  'post /v1/auth/login': ({ email, password }) => ({ email, password }),
  'post /v1/auth/refresh': ({ pair: { refreshToken } }) => ({ refreshToken }),
  'post /v2/accounts': ({ password }) => ({
    email: `${crypto.randomUUID()}@example.com`,
    password,
  }),
  'put /v2/accounts': () => ({ name: 'Ada', apn: [{ token: 'phone' }] }),
  'post /v2/accounts/login': ({ email, password }) => ({ email, password }),
  'post /console/session': ({ email, password }) => ({ email, password }),
  'put /v2/accounts/contacts': () => ({
    emails: [{ address: `${crypto.randomUUID()}@example.com`, labels: ['cellar'] }],
    webhooks: [{ url: 'https://hooks.example/sensorium', whenOver: true }],
  }),
  'put /v2/devices/{deviceAuthUuid}/labels': () => ({ labels: ['cellar'] }),
  'put /v2/accounts/password': ({ password }) => ({
    oldPassword: password,
    newPassword: 'battery staple',
  }),
  'post /v2/accounts/keys': newKey,
  'post /v2/alarms/{alarmId}/snooze': quiet,
  'put /v2/devices/{deviceAuthUuid}/mute': quiet,
  'post /v2/accounts/password/forgotten': ({ email }) => ({ email }),
  'post /v2/accounts/password/reset': ({ resetToken }) => ({
    token: resetToken,
    password: 'battery staple',
  }),
  'put /v2/accounts/email': ({ password }) => ({
    password,
    email: `${crypto.randomUUID()}@example.com`,
  }),
  'post /v2/devices': () => configuration,
  'put /v2/devices/{deviceAuthUuid}/configuration': () => configuration,
  'post /v2/devices/{deviceAuthUuid}/token': () => ({ revoke: true }),
  'post /v2/purposes': () => thresholdPurpose(2, 5),
  'put /v2/purposes/{purposeUuid}': () => thresholdPurpose(3, 7),
  'post /v2/devices/profile': ({ ids }) => ({
    deviceAuthUuids: [ids.deviceAuthUuid],
    purposeUuids: [ids.purposeUuid],
    purposes: [thresholdPurpose(9, 1)],
  }),
};

/** What a query must have, by the operation's name. */
const queries: Record<string, (ids: World['ids']) => string> = {
  'get /v2/measurements': ({ deviceAuthUuid }) => `?devices=${deviceAuthUuid}`,
};

/** A request that the operation answers with 200 for the owner of this world. */
export function exampleOf(operation: Operation, world: World, ids = world.ids): Request {
  const { name, method, path, secured } = operation;
  const token = name === 'post /v1/auth/refresh' ? world.pair.token : world.token;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, key: string) => {
    const id = (ids as Record<string, string>)[key];
    if (id === undefined) throw new Error(`The world has no ${key} for ${name}.`);
    return id;
  });
  return {
    method,
    path: filled + (queries[name]?.(ids) ?? ''),
    token: secured ? token : null,
    ...(operation.body ? { body: bodies[name]?.(world) } : {}),
  };
}
