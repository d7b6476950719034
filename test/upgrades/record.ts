import { lists } from '../../src/play/store.ts';
import { ask, call } from './ask.ts';
import { openWith, type AccountKeys, type Answer, type Opener } from './fixture.ts';

/** What to ask about: accounts' credentials, profiles, and devices that may belong to others or be gone. */
export type Subjects = { accounts: AccountKeys[]; uuids: string[]; pIds: string[] };

type Asked = { path: string; accept?: string; opener?: Opener };

const csv = { accept: 'text/csv' };
const ndjson = { accept: 'application/x-ndjson' };

/** Every list is also asked page by page, because an earlier version's cursor must still work. */
const ofAccount: Asked[] = [
  { path: '/v2/accounts' },
  { path: '/v2/accounts/audit' },
  { path: '/v2/accounts/audit?limit=4&kinds=login,settings-changed,key-made,device-added' },
  { path: '/v2/accounts/contacts' },
  { path: '/v2/accounts/events' },
  { path: '/v2/accounts/events?limit=2' },
  { path: '/v2/accounts/keys' },
  { path: '/v2/accounts/push-tokens' },
  { path: '/v2/accounts/sessions' },
  { path: '/v2/accounts/usage' },
  { path: '/console/session', opener: 'cookie' },
  { path: '/v2/devices' },
  { path: '/v2/devices?limit=3&counts=true&sort=name' },
  { path: '/v2/devices?alarm=open' },
  { path: '/v2/devices?muted=true' },
  { path: '/v2/devices?refused=true' },
  { path: '/v2/devices?label=cellar' },
  { path: '/v2/devices/labels' },
  { path: '/v2/devices/labels/limits' },
  { path: '/v2/devices/removed/refused-logins' },
  { path: '/v2/jobs' },
  { path: '/v2/backtests' },
  { path: '/v2/purposes' },
  { path: '/v2/profiles' },
  { path: '/v2/alarms?limit=2' },
  ...['open', 'acknowledged', 'closed'].map((state) => ({ path: `/v2/alarms?state=${state}` })),
  { path: '/v2/alarms?label=cellar' },
  { path: '/v2/measurements/latest?describe=true' },
  { path: '/v2/measurements/latest?label=cellar' },
  { path: '/v2/measurements?label=cellar' },
  { path: '/v2/measurements?label=cellar&bucket=1d&tz=Europe/Berlin', ...csv },
  { path: '/v2/events?label=cellar' },
  { path: '/v2/commands' },
  { path: '/v2/commands?label=cellar&state=queued' },
  { path: '/v2/events?label=cellar', ...ndjson },
];

/** Asked with an API key that is confined to a label: what it may not read is refused as before. */
const ofKey: Asked[] = [
  '/v2/devices',
  '/v2/jobs',
  '/v2/purposes',
  '/v2/alarms',
  '/v2/measurements/latest',
  '/v2/accounts',
].map((path) => ({ path, opener: 'key' }));

const ofDevice = (uuid: string): Asked[] => [
  { path: `/v2/devices/${uuid}` },
  { path: `/v2/devices/${uuid}/configuration` },
  ...versionsOf(`/v2/devices/${uuid}/configuration`),
  { path: `/v2/devices/${uuid}/profiles` },
  { path: `/v2/devices/${uuid}/evaluation` },
  { path: `/v2/devices/${uuid}/rejections` },
  { path: `/v2/devices/${uuid}/refused-logins` },
  { path: `/v2/devices/${uuid}/notifications` },
  { path: `/v2/devices/${uuid}/notifications?limit=4` },
  { path: `/v2/alarms?device=${uuid}` },
  { path: `/v2/devices/${uuid}/commands` },
  { path: `/v2/events/${uuid}` },
  { path: `/v2/events/${uuid}?type=device&limit=2` },
  { path: `/v2/events/${uuid}?type=sense` },
  { path: `/v2/events/${uuid}?senses=0x02,0x06` },
  { path: `/v2/measurements/${uuid}` },
  { path: `/v2/measurements/${uuid}`, ...csv },
  { path: `/v2/measurements/${uuid}?limit=150&senses=0x01` },
  { path: `/v2/measurements/${uuid}?senses=0x02,0x06&limit=5` },
  { path: `/v2/measurements/${uuid}/late` },
  { path: `/v2/measurements/${uuid}?bucket=1h&senses=0x01` },
  { path: `/v2/measurements/${uuid}?bucket=1d` },
  { path: `/v2/measurements/${uuid}?bucket=1mo&tz=Europe/Berlin` },
];

/** Versions of a thing that has two at most. */
function versionsOf(path: string): Asked[] {
  return ['versions', 'versions/1', 'diff?from=1&to=2'].map((rest) => ({
    path: `${path}/${rest}`,
  }));
}

const ofBacktest = (backtestId: string): Asked[] =>
  ['', '/devices', ...Object.values(lists).map((list) => `/${list}`)].map((rest) => ({
    path: `/v2/backtests/${backtestId}${rest}`,
  }));

const ofNobody: Asked[] = [
  { path: '/v2/status' },
  { path: '/livez' },
  { path: '/readyz' },
  { path: '/v2/accounts' },
  { path: '/console/session' },
];

/** Asks every GET route for every account and device, page by page, and records the answers. */
export async function record(url: string, subjects: Subjects): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const asked of ofNobody) answers.push(...(await walk(url, asked, null)));
  for (const account of subjects.accounts) {
    for (const asked of await listAsked(url, account, subjects))
      answers.push(...(await walk(url, asked, account)));
  }
  await expectAllRoutes(url, answers);
  return answers;
}

async function listAsked(url: string, account: AccountKeys, { uuids, pIds }: Subjects) {
  const { token } = account;
  const list = <T>(path: string) => call<T>(url, path, { token });
  const { purposeUuids } = await list<{ purposeUuids: string[] }>('/v2/purposes');
  const { devices } = await list<{ devices: { uuid: string }[] }>('/v2/devices');
  const { alarms } = await list<{ alarms: { alarmId: number }[] }>('/v2/alarms?limit=100');
  const { commands } = await list<{ commands: { commandId: string; deviceAuthUuid: string }[] }>(
    '/v2/commands',
  );
  const { jobs } = await list<{ jobs: { jobId: string }[] }>('/v2/jobs');
  const { backtests } = await list<{ backtests: { backtestId: string }[] }>('/v2/backtests');
  const own = uuids.filter((uuid) => devices.some((device) => device.uuid === uuid));
  const others = uuids.filter((uuid) => !own.includes(uuid));
  return [
    ...ofAccount.filter(({ opener = 'token' }) => account[opener] !== undefined),
    ...(account.key === undefined ? [] : ofKey),
    ...purposeUuids.flatMap((uuid) => [
      { path: `/v2/purposes/${uuid}` },
      { path: `/v2/purposes/${uuid}/cases` },
      ...versionsOf(`/v2/purposes/${uuid}`),
    ]),
    ...pIds.flatMap((pId) => [
      { path: `/v2/devices/profile/${pId}` },
      { path: `/v2/profiles/${pId}` },
    ]),
    ...alarms.map(({ alarmId }) => ({ path: `/v2/alarms/${alarmId}` })),
    ...commands.map(({ commandId, deviceAuthUuid }) => ({
      path: `/v2/devices/${deviceAuthUuid}/commands/${commandId}`,
    })),
    ...jobs.map(({ jobId }) => ({ path: `/v2/jobs/${jobId}` })),
    ...backtests.flatMap(({ backtestId }) => ofBacktest(backtestId)),
    ...own.flatMap(ofDevice),
    // For devices that are not found, one request per route is enough.
    ...others.flatMap(ofDevice).filter(({ path, accept }) => !path.includes('?') && !accept),
  ];
}

const maxPages = 4;

async function walk(url: string, asked: Asked, account: AccountKeys | null): Promise<Answer[]> {
  const answers: Answer[] = [];
  const opened = account === null ? {} : openWith(account, asked.opener);
  let path: string | null = asked.path;
  while (path !== null && answers.length < maxPages) {
    const { status, body, next } = await ask(url, path, { ...opened, accept: asked.accept });
    answers.push({ account: account?.email ?? null, ...asked, path, status, body });
    path = next;
  }
  return answers;
}

type Document = { paths: Record<string, Record<string, unknown>> };

/** Streams do not end, and have tests of their own. */
const isStream = (path: string) => path.endsWith('/stream') || path === '/v2/streams';

/** A route that is not asked, or has nothing to say, would not be compared. */
async function expectAllRoutes(url: string, answers: Answer[]): Promise<void> {
  const { paths } = await call<Document>(url, '/v2/openapi.json');
  const saying = answers.filter(({ status, body }) => status === 200 && saysSomething(body));
  const missing = Object.entries(paths)
    .filter(([path, methods]) => 'get' in methods && !isStream(path))
    .map(([path]) => path)
    .filter((path) => {
      const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/?]+')}(\\?|$)`);
      return !saying.some((one) => pattern.test(one.path));
    });
  if (missing.length > 0)
    throw new Error(
      `No request of the fixture was answered 200, with something in each list, by: GET ${missing.join(', GET ')}. ` +
        'Add each to test/upgrades/record.ts, and to test/upgrades/scene what it lists.',
    );
}

/** Lists of what is wrong. */
const wrongs = new Set(['degraded', 'caveats', 'truncated', 'warnings']);

/** Text says something; JSON does if no list in its outermost object is empty, except of what is wrong. */
function saysSomething(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return true;
  return !Object.entries(body).some(
    ([name, member]) => !wrongs.has(name) && Array.isArray(member) && member.length === 0,
  );
}
