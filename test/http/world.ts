import { setTimeout as sleep } from 'node:timers/promises';
import { exampleIds, exampleLogin } from '../../src/http/schema.ts';
import { exampleTicket } from '../../src/streams/schema.ts';
import { configuration, thresholdPurpose, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import type { Operation } from './document.ts';

export type Request = {
  method: string;
  path: string;
  token: string | null;
  /** JSON; with `type`, text as it is. */
  body?: unknown;
  type?: string;
};

export type Answered = { status: number; headers: Headers; contentType: string; text: string };

/** Sends a request. Of an endless stream only the head is read. */
export async function send(url: string, request: Request): Promise<Answered> {
  const { method, path, token, body, type } = request;
  const controller = new AbortController();
  const headers: Record<string, string> = {};
  if (token !== null) headers['authorization'] = `Bearer ${token}`;
  if (body !== undefined) headers['content-type'] = type ?? 'application/json';
  const response = await fetch(url + path, {
    method,
    headers,
    body: body === undefined ? null : type === undefined ? JSON.stringify(body) : (body as string),
    signal: controller.signal,
  });
  const contentType = response.headers.get('content-type') ?? '';
  const isEndless = contentType.startsWith('text/event-stream');
  const text = isEndless ? '' : await response.text();
  if (isEndless) controller.abort();
  return { status: response.status, headers: response.headers, contentType, text };
}

/** An account with one of everything, to try every operation on. */
export type World = {
  email: string;
  password: string;
  token: string;
  pair: { token: string; refreshToken: string };
  deviceToken: string;
  /** Of a link that sets a new password, if mails are sent. */
  resetToken?: string;
  /** The address of a stream, with its ticket. */
  streamUrl: string;
  /** Identifiers by the name of the path parameter that takes them. */
  ids: {
    deviceAuthUuid: string;
    purposeUuid: string;
    pId: string;
    id: string;
    alarmId: string;
    keyId: string;
    tokenId: string;
    jobId: string;
    commandId: string;
    backtestId: string;
  };
};

export async function buildWorld(url: string): Promise<World> {
  const email = `${crypto.randomUUID()}@example.com`;
  const { password } = exampleLogin;
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
  const key = await call('POST', '/v2/accounts/keys', token, {
    name: 'a wall',
    scopes: ['data:read'],
  });
  const pushToken = await call('POST', '/v2/accounts/push-tokens', token, {
    token: crypto.randomUUID(),
  });
  const { url: streamUrl } = await call('POST', '/v2/streams', token, { kinds: ['events'] });
  // It concerns no device, so it is done at once.
  const unlabelling = { action: 'unlabel', labels: ['none'], filter: { label: 'none' } };
  const job = await call('POST', '/v2/devices/actions', token, unlabelling);
  const commands = `/v2/devices/${deviceAuthUuid}/commands`;
  const command = await call('POST', commands, token, { name: 'restart' });
  const backtestId = await playBacktest(call, token, { deviceAuthUuid, purposeUuid });
  const { sessions } = await call('GET', '/v2/accounts/sessions', token);
  const other = (sessions as { id: string; current: boolean }[]).find(({ current }) => !current);
  return {
    email,
    password,
    token,
    pair: data as World['pair'],
    deviceToken: String(device['deviceAuthToken']),
    streamUrl: String(streamUrl),
    ids: {
      deviceAuthUuid,
      purposeUuid,
      pId: String(profile['pId']),
      id: other?.id ?? '',
      alarmId: String(alarm?.alarmId),
      keyId: String(key['keyId']),
      tokenId: String(pushToken['tokenId']),
      jobId: String(job['jobId']),
      commandId: String(command['commandId']),
      backtestId,
    },
  };
}

type Call = (
  method: string,
  path: string,
  token: string,
  body?: unknown,
) => Promise<Record<string, unknown>>;

/** A backtest that has ended, and of which nothing is reserved any more. */
async function playBacktest(
  call: Call,
  token: string,
  { deviceAuthUuid, purposeUuid }: { deviceAuthUuid: string; purposeUuid: string },
): Promise<string> {
  const candidate = { purposeUuids: [purposeUuid] };
  const asked = { candidate, devices: [deviceAuthUuid], start: Date.now() - 3_600_000 };
  const { backtestId } = await call('POST', '/v2/backtests', token, asked);
  for (;;) {
    const { state } = await call('GET', `/v2/backtests/${String(backtestId)}`, token);
    const { usage } = await call('GET', '/v2/accounts/usage', token);
    const { used } =
      (usage as { quota: string; used: number }[]).find(
        ({ quota }) => quota === 'backtestValuesPerDay',
      ) ?? {};
    if (state === 'done' && used === 1) return String(backtestId);
    await sleep(100);
  }
}

/** A purpose whose firings are kept as alarms without notifying anybody. */
function alarmingPurpose(puId: number, isGt: number) {
  const { states, ...purpose } = thresholdPurpose(puId, isGt);
  const alarming = states.map(({ events, ...state }) => ({
    ...state,
    events: events.map((event) => ({ ...event, actions: { alarm: true } })),
  }));
  return { ...purpose, states: alarming };
}

type Scalar = string | number;

/** The query of a client that fills in the reference's form: for each parameter its example or its default. */
function queryOf({ queryParameters }: Operation): string {
  const query = new URLSearchParams();
  for (const { name, example, schema } of queryParameters) {
    const value = (example ?? schema['example'] ?? schema['default']) as Scalar | undefined;
    if (value !== undefined) query.set(name, String(value));
  }
  return query.size > 0 ? `?${query.toString()}` : '';
}

/** The names in the examples, and the world's own in place of them. */
function ownOf(world: World, ids: World['ids']): [documented: string, own: string][] {
  return [
    [exampleLogin.email, world.email],
    [exampleIds.device, ids.deviceAuthUuid],
    [exampleIds.purpose, ids.purposeUuid],
    [exampleIds.profile, ids.pId],
    [exampleIds.session, ids.id],
    [exampleIds.key, ids.keyId],
    [exampleIds.pushToken, ids.tokenId],
    [exampleIds.job, ids.jobId],
    [exampleIds.command, ids.commandId],
    [exampleIds.backtest, ids.backtestId],
    [String(exampleIds.alarm), ids.alarmId],
    ['the refreshToken of the previous answer', world.pair.refreshToken],
    ['the part of the link after ?token=', world.resetToken ?? ''],
    [exampleTicket, new URL(world.streamUrl, 'http://x').searchParams.get('ticket') ?? ''],
  ];
}

/** The reference's example with this world's identifiers and tokens. For the world's owner it is answered 200. */
export function exampleOf(operation: Operation, world: World, ids = world.ids): Request {
  const { name, method, path, secured, pathParameters } = operation;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, key: string) => {
    const parameter = pathParameters.find((it) => it.name === key);
    const shown = (parameter?.example ?? parameter?.schema['example']) as Scalar | undefined;
    if (shown === undefined) throw new Error(`${name} has no example of ${key}.`);
    return String(shown);
  });
  const own = ownOf(world, ids);
  // An account registers only once.
  if (name === 'post /v2/accounts')
    own[0] = [exampleLogin.email, `${crypto.randomUUID()}@example.org`];
  const fill = (text: string) =>
    own.reduce((before, [documented, mine]) => before.replaceAll(documented, mine), text);
  return {
    method,
    path: fill(filled + queryOf(operation)),
    token: secured ? (name === 'post /v1/auth/refresh' ? world.pair.token : world.token) : null,
    ...bodyOf(operation, fill),
  };
}

function bodyOf(
  { body, bodyType, example }: Operation,
  fill: (text: string) => string,
): Pick<Request, 'body' | 'type'> {
  if (bodyType === null) return {};
  if (!body) return { body: fill(String(example)), type: bodyType };
  return { body: JSON.parse(fill(JSON.stringify(example))) as unknown };
}
