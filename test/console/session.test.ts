import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSessionCookie } from '../../src/console/session.ts';
import { consoleService, makeAccount, person, type TestService } from './service.ts';

let service: TestService;

beforeAll(async () => {
  service = await consoleService((config) => ({
    ...config,
    http: { ...config.http, trustedProxies: ['127.0.0.1'] },
    publicUrl: 'https://sensors.example.org',
  }));
  await makeAccount(service.url);
});
afterAll(() => service?.close());

type Sent = { method?: string; path?: string; headers?: Record<string, string>; body?: unknown };

/** With Node's own client: `fetch` does not allow setting Host and Origin. */
async function send({ method = 'GET', path = '/console/session', headers = {}, body }: Sent) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const json = body === undefined ? {} : { 'Content-Type': 'application/json' };
  const options = { method, headers: { ...json, ...headers } };
  const asked = httpRequest(service.url + path, options, resolve).on('error', reject);
  asked.end(body === undefined ? undefined : JSON.stringify(body));
  const response = await promise;
  const isEndless = response.headers['content-type']?.startsWith('text/event-stream');
  if (isEndless) response.destroy();
  const text = isEndless ? '' : await textOf(response);
  const cookie = response.headers['set-cookie']?.[0] ?? '';
  return { status: response.statusCode, headers: response.headers, text, cookie };
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
  return text;
}

const signIn = (headers: Record<string, string> = {}) =>
  send({ method: 'POST', headers, body: person });
const pairOf = (cookie: string) => cookie.split(';')[0] ?? '';
const changes = { 'X-Sensorium-Console': '1' };

test('signing in sets a cookie that no script can read, and answers without a token', async () => {
  const { status, cookie, text, headers } = await signIn();
  expect(status).toBe(200);
  expect(cookie).toMatch(
    /^sensorium-[0-9a-f]{12}=[\w.-]+; Max-Age=31536000; HttpOnly; SameSite=Strict; Path=\/$/,
  );
  expect(text).not.toContain(pairOf(cookie).split('=')[1]);
  expect(text).not.toMatch(/token/i);
  expect(headers['cache-control']).toBe('no-store');
});

test('the cookie is Secure if a trusted proxy says that the request came over HTTPS', async () => {
  expect((await signIn({ 'X-Forwarded-Proto': 'https' })).cookie).toMatch(/; Secure$/);
  expect((await signIn({ 'X-Forwarded-Proto': 'http' })).cookie).not.toContain('Secure');
});

test('the cookie suffices for reading; changing something also needs the header', async () => {
  const Cookie = pairOf((await signIn()).cookie);
  expect((await send({ path: '/v2/accounts', headers: { Cookie } })).status).toBe(200);
  const update = { method: 'PUT', path: '/v2/accounts', body: { name: 'Ada' } };
  const refused = await send({ ...update, headers: { Cookie } });
  expect([refused.status, refused.text]).toEqual([
    403,
    expect.stringContaining('X-Sensorium-Console'),
  ]);
  expect((await send({ ...update, headers: { Cookie, ...changes } })).status).toBe(200);
});

test.each(['https://evil.example', 'null', 'http://127.0.0.1:1', 'https://127.0.0.1.evil.example'])(
  'a page of %s gets nothing by the cookie, and cannot sign in',
  async (Origin) => {
    const Cookie = pairOf((await signIn()).cookie);
    const headers = { Cookie, Origin, ...changes };
    expect((await send({ path: '/v2/accounts', headers })).status).toBe(403);
    expect((await send({ path: '/v2/events/stream', headers })).status).toBe(403);
    expect((await send({ headers })).status).toBe(403);
    const entered = await signIn({ Origin });
    expect([entered.status, entered.cookie]).toEqual([403, '']);
  },
);

test("the service's own origin and PUBLIC_URL's are not foreign", async () => {
  const Cookie = pairOf((await signIn()).cookie);
  for (const Origin of [service.url, 'https://sensors.example.org']) {
    const headers = { Cookie, Origin };
    expect((await send({ path: '/v2/accounts', headers })).status).toBe(200);
  }
});

test('the cookie opens event streams', async () => {
  const Cookie = pairOf((await signIn()).cookie);
  const { status, headers } = await send({ path: '/v2/events/stream', headers: { Cookie } });
  expect(status).toBe(200);
  expect(headers['content-type']).toMatch(/^text\/event-stream/);
});

test('signing out ends the session and clears the cookie', async () => {
  const Cookie = pairOf((await signIn()).cookie);
  const other = pairOf((await signIn()).cookie);
  const out = await send({ method: 'DELETE', headers: { Cookie, ...changes } });
  expect([out.status, out.cookie]).toEqual([200, expect.stringMatching(/=; Max-Age=0; HttpOnly/)]);
  expect((await send({ path: '/v2/accounts', headers: { Cookie } })).status).toBe(401);
  const view = JSON.parse((await send({ headers: { Cookie } })).text) as object;
  expect(view).not.toHaveProperty('account');
  expect((await send({ path: '/v2/accounts', headers: { Cookie: other } })).status).toBe(200);
});

test('a form of another site cannot sign in, because its type is not JSON', async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
    const headers = { 'Content-Type': type };
    const { status, cookie } = await send({ method: 'POST', headers, body: person });
    expect([status, cookie]).toEqual([415, '']);
  }
});

test('a bearer token takes precedence over the cookie', async () => {
  const Cookie = pairOf((await signIn()).cookie);
  const headers = { Cookie, Authorization: 'Bearer wrong' };
  expect((await send({ path: '/v2/accounts', headers })).status).toBe(401);
});

test('the answer says who is signed in, and whether this is the first run', async () => {
  const Cookie = pairOf((await signIn()).cookie);
  const view = JSON.parse((await send({ headers: { Cookie } })).text) as object;
  expect(view).toMatchObject({
    account: { email: person.email, language: 'en' },
    firstRun: false,
    openRegistration: true,
    mail: false,
  });
});

test('a session from before the secret was changed continues', () => {
  const [older, newer] = [Buffer.from('older'), Buffer.from('newer')];
  const before =
    createSessionCookie({ keys: [older], publicUrl: null }).keep('token', false)[0] ?? '';
  const header = (name: string) => (name === 'cookie' ? pairOf(before) : '');
  const after = createSessionCookie({ keys: [newer, older], publicUrl: null });
  expect(after.read({ method: 'GET', header })).toBe('token');
  const foreign = createSessionCookie({ keys: [newer], publicUrl: null });
  expect(foreign.read({ method: 'GET', header })).toBeNull();
});

test.each([
  ['https://iot.example.com', 'iot.example.com:443', true],
  ['http://iot.example.com', 'IoT.example.com:80', true],
  ['https://iot.example.com:8443', 'iot.example.com:8443', true],
  ['https://iot.example.com', 'iot.example.com.', true],
  ['http://[::1]:8080', '[0:0:0:0:0:0:0:1]:8080', true],
  ['https://iot.example.com', 'iot.example.com:80', false],
  ['https://iot.example.com', 'iot.example.com:443@evil.example', false],
  ['https://iot.example.com', '', false],
  ['https://iot.example.com.evil.example', 'iot.example.com', false],
])('a page of %s asks its own host at Host: %s: %s', (origin, host, isOwn) => {
  const { refuseForeign } = createSessionCookie({ keys: [Buffer.from('key')], publicUrl: null });
  const ask = () =>
    refuseForeign({ header: (name) => ({ origin, host })[name.toLowerCase()] ?? '' });
  if (isOwn) expect(ask).not.toThrow();
  else expect(ask).toThrow(`Origin is ${origin}, but Host is ${host}`);
});

test('over HTTPS the cookie belongs to this host alone; an earlier one counts after it until it ends', () => {
  const key = Buffer.alloc(32, 1);
  const cookie = createSessionCookie({ keys: [key], publicUrl: null });
  const [kept = '', cleared = ''] = cookie.keep('new', true);
  const [plain = ''] = cookie.keep('old', false);
  expect(kept).toMatch(/^__Host-sensorium-[0-9a-f]{12}=new; .*Path=\/; Secure$/);
  expect(kept).not.toContain('Domain');
  // Otherwise the earlier session would be back after signing out of the later one.
  expect(cleared).toBe(
    `${plain.split('=')[0]}=; Max-Age=0; HttpOnly; SameSite=Strict; Path=/; Secure`,
  );
  const read = (header: string) =>
    cookie.read({ method: 'GET', header: (name) => (name === 'cookie' ? header : '') });
  const pair = (text: string) => text.split(';')[0] ?? '';
  expect(read(pair(plain))).toBe('old');
  expect(read(`${pair(plain)}; ${pair(kept)}`)).toBe('new');
  expect(cookie.clear(true).map((one) => one.split('=')[0])).toEqual(
    [kept, plain].map((one) => one.split('=')[0]),
  );
  expect(cookie.clear(false)).toHaveLength(1);
});
