import { ask, call } from './ask.ts';
import type { AccountKeys, Answer } from './fixture.ts';

/** What to ask about: whose keys, which profiles, and devices that may be somebody else's or gone. */
export type Subjects = { accounts: AccountKeys[]; uuids: string[]; pIds: string[] };

type Asked = { path: string; accept?: string };

const csv = { accept: 'text/csv' };

/** Every list also page by page: a cursor of before still leads on. */
const ofAccount: Asked[] = [
  { path: '/v2/accounts' },
  { path: '/v2/accounts/events' },
  { path: '/v2/accounts/events?limit=2' },
  { path: '/v2/accounts/sessions' },
  { path: '/v2/accounts/usage' },
  { path: '/v2/devices' },
  { path: '/v2/purposes' },
];

const ofDevice = (uuid: string): Asked[] => [
  { path: `/v2/devices/${uuid}/configuration` },
  { path: `/v2/devices/${uuid}/evaluation` },
  { path: `/v2/devices/${uuid}/rejections` },
  { path: `/v2/devices/${uuid}/notifications` },
  { path: `/v2/devices/${uuid}/notifications?limit=4` },
  { path: `/v2/events/${uuid}` },
  { path: `/v2/events/${uuid}?type=device&limit=2` },
  { path: `/v2/events/${uuid}?type=sense` },
  { path: `/v2/events/${uuid}?senses=0x02,0x06` },
  { path: `/v2/measurements/${uuid}` },
  { path: `/v2/measurements/${uuid}`, ...csv },
  { path: `/v2/measurements/${uuid}?limit=150&senses=0x01` },
  { path: `/v2/measurements/${uuid}?senses=0x02,0x06&limit=5` },
  { path: `/v2/measurements/${uuid}?bucket=1h&senses=0x01` },
  { path: `/v2/measurements/${uuid}?bucket=1d` },
];

const ofNobody: Asked[] = [
  { path: '/v2/status' },
  { path: '/livez' },
  { path: '/readyz' },
  { path: '/v2/accounts' },
];

/** Asks every GET route for every account and device, with pages, and writes down what comes back. */
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

type Listed = { devices: { uuid: string }[] };

async function listAsked(url: string, { token }: AccountKeys, { uuids, pIds }: Subjects) {
  const { purposeUuids } = await call<{ purposeUuids: string[] }>(url, '/v2/purposes', { token });
  const { devices } = await call<Listed>(url, '/v2/devices', { token });
  const own = uuids.filter((uuid) => devices.some((device) => device.uuid === uuid));
  const others = uuids.filter((uuid) => !own.includes(uuid));
  return [
    ...ofAccount,
    ...purposeUuids.map((uuid) => ({ path: `/v2/purposes/${uuid}` })),
    ...pIds.map((pId) => ({ path: `/v2/devices/profile/${pId}` })),
    ...own.flatMap(ofDevice),
    // Not found, however it is asked for: once a route is enough.
    ...others.flatMap(ofDevice).filter(({ path, accept }) => !path.includes('?') && !accept),
  ];
}

const maxPages = 4;

async function walk(url: string, asked: Asked, account: AccountKeys | null): Promise<Answer[]> {
  const answers: Answer[] = [];
  let path: string | null = asked.path;
  while (path !== null && answers.length < maxPages) {
    const reply = await ask(url, path, { token: account?.token ?? null, accept: asked.accept });
    const { status, body } = reply;
    answers.push({ account: account?.email ?? null, ...asked, path, status, body });
    path = reply.next;
  }
  return answers;
}

type Document = { paths: Record<string, Record<string, unknown>> };

/** A route that is not asked would not be compared. Streams do not end: they have tests of their own. */
async function expectAllRoutes(url: string, answers: Answer[]): Promise<void> {
  const { paths } = await call<Document>(url, '/v2/openapi.json');
  const asked = answers.filter(({ status }) => status === 200).map(({ path }) => path);
  const missing = Object.entries(paths)
    .filter(([path, methods]) => 'get' in methods && !path.endsWith('/stream'))
    .map(([path]) => path)
    .filter((path) => {
      const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/?]+')}(\\?|$)`);
      return !asked.some((one) => pattern.test(one));
    });
  if (missing.length > 0)
    throw new Error(
      `No request of the fixture was answered 200 by: GET ${missing.join(', GET ')}. Add each to ` +
        'ofAccount or ofDevice in test/upgrades/record.ts, and to test/upgrades/scene what it lists.',
    );
}
