import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databaseKinds } from '../support/database.ts';
import { configuration, openApp, send, type App, type Registration } from './app.ts';
import { testService, type TestService } from './service.ts';

type Login = { accountAuthToken: string };
type Problems = { errors: { path: string; message: string }[] };

describe.each(databaseKinds)('a filter by one label, on %s', (kind) => {
  let service: TestService;
  let app: App;
  let token: string;
  beforeAll(async () => {
    service = await testService({}, { kind });
    app = await openApp(service.url);
    const login = { email: app.email, password: 'correct horse battery' };
    const { accountAuthToken } = await app.call<Login>('POST', '/v2/accounts/login', login);
    token = accountAuthToken;
    for (const labels of [['odd'], ['odd,even'], ['😀'.repeat(64)]]) {
      const { deviceAuthUuid } = await app.call<Registration>('POST', '/v2/devices', configuration);
      await app.call('PUT', `/v2/devices/${deviceAuthUuid}/labels`, { labels });
    }
  });
  afterAll(() => service?.close());

  /** The status, and for a 400 the problems. Closes a stream at once. */
  async function ask(method: string, path: string, body?: unknown) {
    const response = await send(service.url + path, method, body, token);
    const problems = response.status === 400 ? ((await response.json()) as Problems).errors : [];
    if (response.status !== 400) await response.body?.cancel();
    return [response.status, ...problems];
  }

  const routes = [
    '/v2/devices',
    '/v2/alarms',
    '/v2/events',
    '/v2/measurements',
    '/v2/measurements/latest',
    '/v2/measurements/stream',
  ];
  const asked = (label: string) => `?${new URLSearchParams({ label }).toString()}`;

  test.each(routes)('%s takes the label as it is, even with a comma', async (path) => {
    for (const label of ['odd', 'odd,even', 'nobody', '😀'.repeat(64)])
      expect([label, ...(await ask('GET', path + asked(label)))]).toEqual([label, 200]);
  });

  test.each(routes)('%s says that several labels are no label', async (path) => {
    const message = 'no device has this label: expected one label (a comma is part of it)';
    for (const label of ['even,odd', 'odd,', ','])
      expect(await ask('GET', path + asked(label))).toEqual([400, { path: 'label', message }]);
  });

  test.each(routes)('%s refuses a label that is too long or empty', async (path) => {
    for (const label of ['', 'a'.repeat(65), '😀'.repeat(65)])
      expect(await ask('GET', path + asked(label))).toMatchObject([400, { path: 'label' }]);
  });

  test('bodies with a label name its place in the error', async () => {
    const filter = { label: 'even,odd' };
    const stream = { kinds: ['measurements'], filters: filter };
    expect(await ask('POST', '/v2/streams', stream)).toMatchObject([
      400,
      { path: '/filters/label' },
    ]);
    const action = { action: 'label', labels: ['new'], filter };
    expect(await ask('POST', '/v2/devices/actions', action)).toMatchObject([
      400,
      { path: '/filter/label' },
    ]);
  });
});
