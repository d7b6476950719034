import { randomUUID } from 'node:crypto';
import { call } from '../api.ts';
import { meterConfiguration, meterPurpose } from '../meter.ts';
import type { BigAccount } from './fill.ts';

export type RouteRequest = {
  name: string;
  /** `GET /v2/devices/{deviceAuthUuid}`, as in the reference. */
  route: string;
  /** Creates what the request needs, unmeasured. */
  make: (n: number) => Promise<{ path: string; body?: string }>;
  /** Absent: the account's session. */
  token?: string;
  /** Media type of the body; JSON if absent. */
  type?: string;
  headers?: Record<string, string>;
  rounds?: number;
  /** An export or a stream: waits only for its first byte. */
  isFirstByte?: boolean;
};

/** Routes of the reference that are not requested, and why. */
export const untimed: Record<string, string> = {
  'GET /v2/streams': 'the same streams as /v2/events/stream and /v2/measurements/stream',
  'POST /v2/alarms/{alarmId}/reopen':
    'the same row as close; what is filled in has no episode to go on',
  'POST /v2/accounts/password/forgotten': 'sends mail, which is not configured here',
  'POST /v2/accounts/password/reset': 'needs a link of a mail',
  'PUT /v2/accounts/email': 'sends mail, which is not configured here',
  'PUT /v2/accounts/password': 'ends the sessions that ask here; one row of the account',
  'DELETE /v2/accounts': 'ends the account: its own removal is measured by bench/answers.ts',
  'POST /v1/auth/refresh': 'a refresh token is used up; one row of a session',
  'POST /v2/accounts/contacts/test': 'sends a message',
  'GET /console/session': 'the same session as GET /v2/accounts, by cookie',
  'POST /console/session': 'the same login as /v2/accounts/login',
  'DELETE /console/session': 'the same as DELETE /v2/accounts/sessions/{id}',
};

const json = (value: unknown) => JSON.stringify(value);
const site = 'site%203';
const one = 'one%20of%20all';

/**
 * Every route of the reference, lists with all their filters; with a session, and with API keys restricted to labels.
 */
export async function requestsOf(baseUrl: string, account: BigAccount): Promise<RouteRequest[]> {
  const { token, email, devices } = account;
  const ask = <T>(method: string, path: string, body?: unknown, of = token) =>
    call<T>(baseUrl, method, path, { token: of, ...(body === undefined ? {} : { body }) });
  const uuids = devices.map(({ uuid }) => uuid);
  // The first device has most of everything; the others are typical.
  const uuid = uuids[0] as string;
  const siteKey = await makeKey(ask, ['site 3']);
  const nobodyKey = await makeKey(ask, ['nobody']);

  const get = (route: string, path = route, more: Partial<RouteRequest> = {}): RouteRequest => ({
    name: `GET ${path.replaceAll(uuid, ':uuid').slice(0, 66)}`,
    route: `GET ${route}`,
    make: async () => ({ path }),
    ...more,
  });
  const send = (
    method: 'POST' | 'PUT' | 'DELETE',
    route: string,
    make: RouteRequest['make'],
    more: Partial<RouteRequest> = {},
  ): RouteRequest => ({ name: `${method} ${route}`, route: `${method} ${route}`, make, ...more });
  const ofDevice = (rest: string) => `/v2/devices/{deviceAuthUuid}${rest}`;
  const firstByte = { isFirstByte: true };

  const devicePaths = [
    '',
    '?limit=100',
    '?limit=100&cursor=next',
    ...['name', '-name', 'lastSeenTs', '-lastSeenTs', '-registeredTs'].map(
      (sort) => `?limit=100&sort=${sort}`,
    ),
    '?limit=100&sort=name&cursor=next',
    '?limit=100&sort=-lastSeenTs&counts=true',
    '?limit=100&search=zzz&sort=-lastSeenTs&counts=true',
    '?limit=100&search=Meter%209999',
    '?limit=100&search=S-9999&sort=name',
    `?limit=100&search=${uuids.at(-1)?.slice(0, 8)}`,
    `?limit=100&label=${site}&counts=true`,
    '?limit=100&label=nobody&sort=name&counts=true',
    '?limit=100&online=true&counts=true',
    '?limit=100&online=false&sort=name',
    ...['online', 'offline', 'intermittent'].map((presence) => `?limit=100&presence=${presence}`),
    '?limit=100&alarm=open&counts=true',
    '?limit=100&refused=true&counts=true',
    '?limit=100&refused=false&sort=name',
    '?limit=100&muted=true',
    '?limit=100&muted=false',
    '?limit=100&state=1:1',
    '?limit=100&state=9:9',
    '?limit=100&value=0x01:gt:1e9&counts=true',
    '?limit=100&value=0x01:lt:1e9&sort=name',
    '?limit=100&beyond=true&counts=true',
    '?limit=100&beyond=false',
    '?limit=100&swName=probe&swVersion=2&hwVersion=B',
    ...['pending', 'current', 'none'].map((profile) => `?limit=100&profile=${profile}&counts=true`),
    `?limit=100&search=zzz&label=${site}&presence=offline&alarm=open&refused=true&muted=true&profile=none&counts=true`,
  ];
  const alarmPaths = [
    '',
    '?limit=100',
    '?limit=100&cursor=next',
    ...['open', 'acknowledged', 'closed'].flatMap((state) => [
      `?limit=100&state=${state}`,
      `?limit=100&state=${state}&device=${uuid}`,
      `?limit=100&state=${state}&device=${uuids.at(-1)}`,
      `?limit=100&state=${state}&label=${one}`,
      `?limit=100&state=${state}&label=nobody`,
    ]),
    `?limit=100&device=${uuid}`,
    `?limit=100&device=${uuids[500]}`,
    `?limit=100&device=${randomUUID()}`,
    '?limit=100&label=nobody',
    `?limit=100&label=${one}`,
    `?limit=100&label=${site}`,
    `?limit=100&label=${site}&cursor=next`,
    `?limit=100&label=${one}&device=${uuid}`,
    // The forms that look at all open alarms, or at the newest closed ones, before they answer.
    '?limit=100&state=open&counts=true&group=event',
    '?limit=100&state=open&group=label&sort=severity',
    '?limit=100&state=closed&counts=true',
    '?limit=100&counts=true&search=nothing',
    '?limit=100&sort=name',
    `?limit=100&label=${one}&label=${site}`,
  ];
  const pageOf = async (path: string, of: string) => {
    if (!path.includes('cursor=next')) return path;
    const first = path.replace(/[?&]cursor=next/, '');
    const answer = await fetch(baseUrl + first, { headers: { authorization: `Bearer ${of}` } });
    return /<([^>]+)>/.exec(answer.headers.get('link') ?? '')?.[1] ?? first;
  };
  const lists = (route: string, paths: string[], of: Partial<RouteRequest>, as = '') =>
    Promise.all(
      paths.map(async (rest) => ({
        ...get(route, await pageOf(route + rest, of.token ?? token), of),
        name: `GET ${route + rest}${as}`.replaceAll(uuid, ':uuid'),
      })),
    );
  const withKeys = async (route: string, paths: string[]) => [
    ...(await lists(route, paths, {})),
    ...(await lists(route, paths, { token: siteKey }, ' (key of a site)')),
    ...(await lists(route, paths, { token: nobodyKey }, ' (key of nobody)')),
  ];
  const openAlarm = async () => {
    const { alarms } = await ask<{ alarms: { alarmId: number }[] }>(
      'GET',
      '/v2/alarms?state=open&limit=1',
    );
    return alarms[0]?.alarmId ?? 0;
  };
  const measuredDevices = uuids.slice(0, 100).join();
  const aDay = `start=${Date.now() - 86_400_000}`;
  const untilTs = Date.now() + 30 * 86_400_000;
  const tempDevice = async () =>
    (await ask<{ deviceAuthUuid: string }>('POST', '/v2/devices', meterConfiguration))
      .deviceAuthUuid;
  const tempPurpose = async () =>
    (await ask<{ purposeUuid: string }>('POST', '/v2/purposes', meterPurpose)).purposeUuid;
  const { pId } = await ask<{ pId: string }>('POST', '/v2/devices/profile', {
    deviceAuthUuids: uuids.slice(0, 1_000),
    purposeUuids: [],
    purposes: [{ ...meterPurpose, name: 'the bench' }],
  });
  const { purposeUuids } = await ask<{ purposeUuids: string[] }>('GET', '/v2/purposes');
  const removable = purposeUuids.slice(-5);
  for (const each of removable) await ask('DELETE', `/v2/purposes/${each}`);
  const manySenses = json({
    ...meterConfiguration,
    module: [
      {
        moduleId: 'm1',
        moduleName: 'Many',
        senses: Array.from({ length: 1_000 }, (_, n) => ({ sId: `0x${(n + 4_096).toString(16)}` })),
      },
    ],
  });
  const { jobs } = await ask<{ jobs: { jobId: string }[] }>('GET', '/v2/jobs');
  const list100 = { deviceAuthUuids: uuids.slice(0, 100) };

  return [
    get('/v2/status'),
    get('/livez'),
    get('/readyz'),
    send(
      'POST',
      '/v2/accounts',
      async () => ({
        path: '/v2/accounts',
        body: json({ email: `p${randomUUID()}@example.com`, password: account.password }),
      }),
      { rounds: 20 },
    ),
    send(
      'POST',
      '/v2/accounts/login',
      async () => ({
        path: '/v2/accounts/login',
        body: json({ email, password: account.password }),
      }),
      { rounds: 20 },
    ),
    send(
      'POST',
      '/v1/auth/login',
      async () => ({
        path: '/v1/auth/login',
        body: json({ email, password: account.password }),
      }),
      { rounds: 20 },
    ),
    get('/v2/accounts'),
    send('PUT', '/v2/accounts', async (n) => ({
      path: '/v2/accounts',
      body: json({ name: `n${n}` }),
    })),
    get('/v2/accounts/events'),
    get('/v2/accounts/events', `/v2/accounts/events?start=1&end=${Date.now() - 200 * 86_400_000}`),
    get('/v2/accounts/audit'),
    get('/v2/accounts/audit', '/v2/accounts/audit?limit=100'),
    get('/v2/accounts/usage'),
    get('/v2/accounts/sessions'),
    send(
      'DELETE',
      '/v2/accounts/sessions/{id}',
      async () => {
        const { sessions } = await ask<{ sessions: { id: string; isCurrent?: boolean }[] }>(
          'GET',
          '/v2/accounts/sessions',
        );
        const login = await ask<{ accountAuthToken: string }>('POST', '/v2/accounts/login', {
          email,
          password: account.password,
        });
        const after = await ask<{ sessions: { id: string }[] }>(
          'GET',
          '/v2/accounts/sessions',
          undefined,
          login.accountAuthToken,
        );
        const fresh = after.sessions.find(({ id }) => !sessions.some((each) => each.id === id));
        return { path: `/v2/accounts/sessions/${fresh?.id}` };
      },
      { rounds: 5 },
    ),
    get('/v2/accounts/contacts'),
    send(
      'PUT',
      '/v2/accounts/contacts',
      async (n) => ({
        path: '/v2/accounts/contacts',
        body: json({
          emails: [],
          webhooks: Array.from({ length: 40 }, (_, i) => ({
            url: `https://example.com/${i + (n % 2)}`,
          })),
        }),
      }),
      { rounds: 20 },
    ),
    get('/v2/accounts/push-tokens'),
    send('POST', '/v2/accounts/push-tokens', async () => ({
      path: '/v2/accounts/push-tokens',
      body: json({ token: 'of a telephone' }),
    })),
    send('DELETE', '/v2/accounts/push-tokens/{tokenId}', async () => {
      const added = { token: 'of another telephone' };
      const { tokenId } = await ask<{ tokenId: string }>('POST', '/v2/accounts/push-tokens', added);
      return { path: `/v2/accounts/push-tokens/${tokenId}` };
    }),
    send('DELETE', '/v2/accounts/push-tokens', async () => ({
      path: '/v2/accounts/push-tokens',
    })),
    get('/v2/accounts/keys'),
    send(
      'POST',
      '/v2/accounts/keys',
      async () => {
        await dropKeys(ask, 40);
        return { path: '/v2/accounts/keys', body: json({ name: 'k', scopes: ['devices:read'] }) };
      },
      { rounds: 20 },
    ),
    send(
      'DELETE',
      '/v2/accounts/keys/{keyId}',
      async () => {
        await dropKeys(ask, 40);
        const { keyId } = await ask<{ keyId: string }>('POST', '/v2/accounts/keys', {
          name: 'k',
          scopes: ['devices:read'],
        });
        return { path: `/v2/accounts/keys/${keyId}` };
      },
      { rounds: 20 },
    ),

    ...(await withKeys('/v2/devices', devicePaths.slice(1))),
    get('/v2/devices', '/v2/devices', firstByte),
    get('/v2/devices/labels'),
    get('/v2/devices/labels', '/v2/devices/labels', {
      token: siteKey,
      name: 'GET /v2/devices/labels (key of a site)',
    }),
    send('POST', '/v2/devices', async () => ({
      path: '/v2/devices',
      body: json(meterConfiguration),
    })),
    send(
      'POST',
      '/v2/devices/batch',
      async () => ({
        path: '/v2/devices/batch',
        body: json({ devices: Array.from({ length: 100 }, () => meterConfiguration) }),
      }),
      { rounds: 20, isFirstByte: true },
    ),
    send(
      'POST',
      '/v2/devices/actions',
      async () => {
        await jobsDone(ask);
        return {
          path: '/v2/devices/actions',
          body: json({
            action: 'label',
            labels: ['new'],
            deviceAuthUuids: list100.deviceAuthUuids,
          }),
        };
      },
      { rounds: 20 },
    ),
    send(
      'POST',
      '/v2/devices/actions',
      async () => {
        await jobsDone(ask);
        return {
          path: '/v2/devices/actions',
          body: json({ action: 'unmute', filter: { search: 'zzz', label: 'nobody' } }),
        };
      },
      { rounds: 20, name: 'POST /v2/devices/actions (a filter that finds nothing)' },
    ),
    send(
      'POST',
      '/v2/alarms/actions',
      async () => {
        await jobsDone(ask);
        const body = json({ action: 'unsnooze', filter: { search: 'zzz', label: 'nobody' } });
        return { path: '/v2/alarms/actions', body };
      },
      { rounds: 20, name: 'POST /v2/alarms/actions (a filter that finds nothing)' },
    ),
    send(
      'POST',
      '/v2/alarms/actions',
      async () => {
        await jobsDone(ask);
        return { path: '/v2/alarms/actions', body: json({ action: 'unsnooze', filter: {} }) };
      },
      { rounds: 5, name: 'POST /v2/alarms/actions (all that are open)' },
    ),
    send(
      'POST',
      '/v2/devices/actions',
      async () => {
        await jobsDone(ask);
        return { path: '/v2/devices/actions', body: json({ action: 'unmute', filter: {} }) };
      },
      { rounds: 5, isFirstByte: true, name: 'POST /v2/devices/actions (all)' },
    ),
    get('/v2/jobs'),
    get('/v2/jobs/{jobId}', `/v2/jobs/${jobs[0]?.jobId}`),
    send(
      'DELETE',
      '/v2/jobs/{jobId}',
      async () => {
        await jobsDone(ask);
        const { jobId } = await ask<{ jobId: string }>('POST', '/v2/devices/actions', {
          action: 'unmute',
          ...list100,
        });
        return { path: `/v2/jobs/${jobId}` };
      },
      { rounds: 5 },
    ),
    send('POST', '/v2/devices/profile', async (n) => ({
      path: '/v2/devices/profile',
      body: json({
        ...list100,
        purposeUuids: [],
        purposes: [{ ...meterPurpose, name: `n${n % 5}` }],
      }),
    })),
    send(
      'POST',
      '/v2/devices/profile',
      async (n) => ({
        path: '/v2/devices/profile',
        body: json({
          deviceAuthUuids: uuids.slice(0, 1_000),
          purposeUuids: [],
          purposes: [{ ...meterPurpose, name: `n${n % 5}` }],
        }),
      }),
      { rounds: 10, name: 'POST /v2/devices/profile (1,000 devices: no bound)' },
    ),
    get('/v2/devices/profile/{pId}', `/v2/devices/profile/${pId}`),
    get(ofDevice(''), `/v2/devices/${uuid}`),
    send('DELETE', ofDevice(''), async () => ({ path: `/v2/devices/${await tempDevice()}` })),
    get(ofDevice('/configuration'), `/v2/devices/${uuid}/configuration`),
    send('PUT', ofDevice('/configuration'), async () => ({
      path: `/v2/devices/${uuids[100]}/configuration`,
      body: json(meterConfiguration),
    })),
    send(
      'PUT',
      ofDevice('/configuration'),
      async () => ({ path: `/v2/devices/${uuids[101]}/configuration`, body: manySenses }),
      { name: 'PUT configuration of 1,000 senses' },
    ),
    get(ofDevice('/evaluation'), `/v2/devices/${uuid}/evaluation`),
    send('PUT', ofDevice('/labels'), async (n) => ({
      path: `/v2/devices/${uuids[200]}/labels`,
      body: json({ labels: [`l${n}`] }),
    })),
    send('PUT', ofDevice('/mute'), async () => ({
      path: `/v2/devices/${uuid}/mute`,
      body: json({ untilTs }),
    })),
    send('DELETE', ofDevice('/mute'), async () => ({ path: `/v2/devices/${uuid}/mute` })),
    get(ofDevice('/notifications'), `/v2/devices/${uuid}/notifications?limit=100`),
    get(ofDevice('/notifications'), `/v2/devices/${uuids[777]}/notifications?limit=100`),
    get('/v2/devices/removed/refused-logins'),
    get(ofDevice('/refused-logins'), `/v2/devices/${uuid}/refused-logins`),
    get(ofDevice('/rejections'), `/v2/devices/${uuid}/rejections`),
    send('POST', ofDevice('/token'), async () => ({
      path: `/v2/devices/${uuids[400]}/token`,
      body: '{}',
    })),

    ...(await withKeys('/v2/alarms', alarmPaths)),
    get('/v2/alarms/{alarmId}', `/v2/alarms/${await openAlarm()}`),
    ...['acknowledge', 'close'].map((act) =>
      send(
        'POST',
        `/v2/alarms/{alarmId}/${act}`,
        async () => ({
          path: `/v2/alarms/${await openAlarm()}/${act}`,
          body: json(act === 'close' ? { force: true } : {}),
        }),
        { rounds: 20 },
      ),
    ),
    send('POST', '/v2/alarms/{alarmId}/snooze', async () => ({
      path: `/v2/alarms/${await openAlarm()}/snooze`,
      body: json({ untilTs }),
    })),
    send('DELETE', '/v2/alarms/{alarmId}/snooze', async () => ({
      path: `/v2/alarms/${await openAlarm()}/snooze`,
    })),

    get('/v2/events/{deviceAuthUuid}', `/v2/events/${uuid}`),
    ...[
      'type=device',
      'type=sense',
      'senses=0x01',
      'senses=0xffff',
      'type=device&senses=0x01',
      `start=1&end=${Date.now() - 86_400_000}`,
    ].map((query) => get('/v2/events/{deviceAuthUuid}', `/v2/events/${uuid}?${query}`)),
    get('/v2/events/{deviceAuthUuid}', `/v2/events/${uuids.at(-1)}`),
    get('/v2/events', `/v2/events?devices=${uuid}`, firstByte),
    get('/v2/events', '/v2/events?label=nobody', firstByte),
    get('/v2/events', `/v2/events?label=${site}&purpose=99`, firstByte),
    get('/v2/events', `/v2/events?label=${site}&senses=0xffff`, firstByte),
    get('/v2/events/stream', '/v2/events/stream', {
      ...firstByte,
      rounds: 5,
      headers: { 'last-event-id': '1.1:1:.0' },
    }),
    get('/v2/events/{deviceAuthUuid}/stream', `/v2/events/${uuid}/stream`, {
      ...firstByte,
      rounds: 5,
      headers: { 'last-event-id': '1.1:1:.0' },
    }),
    get('/v2/measurements/stream', `/v2/measurements/stream?label=${site}`, {
      ...firstByte,
      rounds: 5,
    }),
    send(
      'POST',
      '/v2/streams',
      async () => ({
        path: '/v2/streams',
        body: json({ kinds: ['events', 'alarms', 'measurements'], filters: { label: 'site 3' } }),
      }),
      { rounds: 20 },
    ),

    get('/v2/measurements/{deviceAuthUuid}', `/v2/measurements/${uuid}`),
    ...[
      'senses=0x01',
      'senses=0xffff',
      'bucket=1m&senses=0x01',
      'bucket=1d',
      'bucket=365d',
      `${aDay}&bucket=1h`,
      `end=${Date.now() - 80_000_000}`,
    ].map((query) =>
      get(
        '/v2/measurements/{deviceAuthUuid}',
        `/v2/measurements/${uuid}?${query}`,
        // Up to 60,000 buckets, which are sent as they are read.
        query.includes('bucket') ? firstByte : {},
      ),
    ),
    get('/v2/measurements/{deviceAuthUuid}', `/v2/measurements/${uuids[1]}?bucket=1d`),
    get('/v2/measurements/{deviceAuthUuid}', `/v2/measurements/${uuids.at(-1)}?bucket=1d`),
    get(
      '/v2/measurements/latest',
      `/v2/measurements/latest?devices=${measuredDevices}&describe=true`,
    ),
    get('/v2/measurements/latest', `/v2/measurements/latest?label=${site}&limit=100`),
    get('/v2/measurements/latest', '/v2/measurements/latest?label=nobody'),
    get('/v2/measurements/latest', '/v2/measurements/latest?limit=100&senses=0xffff'),
    get('/v2/measurements/latest', '/v2/measurements/latest?limit=100&senses=0x1001'),
    get('/v2/measurements/latest', '/v2/measurements/latest?limit=500', {
      name: 'GET /v2/measurements/latest?limit=500 (no bound)',
    }),
    get('/v2/measurements', `/v2/measurements?label=${site}`, firstByte),
    get('/v2/measurements', `/v2/measurements?label=${site}&bucket=1d`, firstByte),
    get(
      '/v2/measurements',
      `/v2/measurements?label=${site}&bucket=1mo&tz=Europe/Berlin&stats=sum,delta`,
      firstByte,
    ),
    get('/v2/measurements', '/v2/measurements?label=nobody', firstByte),
    get('/v2/measurements', `/v2/measurements?devices=${uuid}`, firstByte),
    send(
      'POST',
      '/v2/measurements/import',
      async (n) => ({
        path: '/v2/measurements/import',
        body: Array.from({ length: 100 }, (_, i) =>
          json({ deviceAuthUuid: uuids[500], sId: '0x01', val: i, ts: Date.now() - n * 1_000 - i }),
        ).join('\n'),
      }),
      { type: 'application/x-ndjson', rounds: 20, isFirstByte: true },
    ),

    get('/v2/purposes'),
    send(
      'POST',
      '/v2/purposes',
      async (n) => {
        if (n > 0) await ask('DELETE', `/v2/purposes/${await lastPurpose(ask)}`);
        return { path: '/v2/purposes', body: json(meterPurpose) };
      },
      { rounds: 10 },
    ),
    get('/v2/purposes/{purposeUuid}', `/v2/purposes/${purposeUuids[0]}`),
    send('PUT', '/v2/purposes/{purposeUuid}', async (n) => ({
      path: `/v2/purposes/${purposeUuids[1]}`,
      body: json({ ...meterPurpose, name: `n${n}` }),
    })),
    send(
      'DELETE',
      '/v2/purposes/{purposeUuid}',
      async () => ({ path: `/v2/purposes/${await tempPurpose()}` }),
      { rounds: 10 },
    ),
  ];
}

type Asking = <T>(method: string, path: string, body?: unknown) => Promise<T>;

async function makeKey(ask: Asking, labels: string[]): Promise<string> {
  const scopes = ['devices:read', 'alarms:read', 'data:read'];
  await dropKeys(ask, 40);
  return (
    await ask<{ key: string }>('POST', '/v2/accounts/keys', { name: 'bench', scopes, labels })
  ).key;
}

/** Makes space for another key. */
async function dropKeys(ask: Asking, most: number): Promise<void> {
  const { keys } = await ask<{ keys: { keyId: string; name: string; createdTs: number }[] }>(
    'GET',
    '/v2/accounts/keys',
  );
  for (const { keyId } of keys
    .toSorted((a, b) => a.createdTs - b.createdTs)
    .slice(0, Math.max(0, keys.length - most)))
    await ask('DELETE', `/v2/accounts/keys/${keyId}`);
}

async function lastPurpose(ask: Asking): Promise<string | undefined> {
  const { purposeUuids } = await ask<{ purposeUuids: string[] }>('GET', '/v2/purposes');
  return purposeUuids.at(-1);
}

/** An account may have two jobs at a time. */
async function jobsDone(ask: Asking): Promise<void> {
  for (;;) {
    const { jobs } = await ask<{ jobs: { state: string }[] }>('GET', '/v2/jobs');
    if (jobs.every(({ state }) => state !== 'running')) return;
  }
}
