import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compareAnswers, inPresentWords } from './compare.ts';
import { readFixture, type Answer, type Fixture } from './fixture.ts';

// Whether the comparison of two versions notices a difference: a server repeats what a version answered, but for one
// path.

let server: Server;
let fixture: Fixture;
/** Changes the answers of a path. */
let change: { path: string; as: (answer: Answer) => Partial<Answer> } | null = null;

const keyOf = (path: string, credential = '', accept = '*/*') =>
  JSON.stringify([path, credential, accept]);

beforeAll(async () => {
  fixture = await readFixture('0.4.0');
  const accounts = new Map(fixture.accounts.map((account) => [account.email, account]));
  const recorded = new Map(
    fixture.answers.map((answer) => {
      const opener = answer.opener ?? 'token';
      const secret = accounts.get(answer.account ?? '')?.[opener];
      const credential = secret === undefined || opener === 'cookie' ? secret : `Bearer ${secret}`;
      return [keyOf(answer.path, credential, answer.accept), inPresentWords(answer)];
    }),
  );
  server = createServer((request, response) => {
    const { url = '', headers } = request;
    const answer = recorded.get(
      keyOf(url, headers.authorization ?? headers.cookie, headers.accept),
    );
    if (!answer) return void response.writeHead(500).end(`not recorded: ${url}`);
    const { status, body } = { ...answer, ...(url === change?.path ? change.as(answer) : {}) };
    const isText = typeof body === 'string';
    response.writeHead(status, { 'Content-Type': isText ? 'text/plain' : 'application/json' });
    response.end(isText ? body : JSON.stringify(body));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

function compare(changed: typeof change): Promise<void> {
  change = changed;
  return compareAnswers(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, fixture);
}

const first = (matches: (answer: Answer) => boolean) => fixture.answers.find(matches) as Answer;
const devices = () =>
  first(({ path, status }) => path.startsWith('/v2/devices?') && status === 200).path;
const bodyOf = (answer: Answer) => answer.body as { devices: Record<string, unknown>[] };

test('the same answers are the same, and may have more members', async () => {
  await compare(null);
  await compare({
    path: devices(),
    as: (answer) => ({ body: { ...bodyOf(answer), later: true } }),
  });
});

test.each<[string, (answer: Answer) => Partial<Answer>]>([
  ['another status', () => ({ status: 201 })],
  ['a member less', (answer) => ({ body: { ...bodyOf(answer), devices: undefined } })],
  ['an element less', (answer) => ({ body: { devices: bodyOf(answer).devices.slice(1) } })],
  [
    'another value, deep inside',
    (answer) => ({
      body: {
        ...bodyOf(answer),
        devices: bodyOf(answer).devices.map((device) => ({ ...device, name: 'another' })),
      },
    }),
  ],
])('%s is noticed', async (_, as) => {
  await expect(compare({ path: devices(), as })).rejects.toThrow('to deeply equal');
});

test('a lower quota, or less of what was stored, is noticed', async () => {
  const path = '/v2/accounts/usage';
  for (const less of ['limit', 'used'])
    await expect(
      compare({
        path,
        as: ({ body, status }) =>
          status !== 200
            ? {}
            : {
                body: {
                  usage: (body as { usage: Record<string, unknown>[] }).usage.map((one) =>
                    one['quota'] === 'devices' ? { ...one, [less]: 0 } : one,
                  ),
                },
              },
      }),
    ).rejects.toThrow('to deeply equal');
});
