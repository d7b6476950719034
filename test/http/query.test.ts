import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configuration, openApp, type App, type Registration } from '../journeys/app.ts';
import { testService, type TestService } from '../journeys/service.ts';

type Problem = { path: string; message: string };

describe('parameters of a query that a route does not know', () => {
  let service: TestService;
  let app: App;
  let uuid: string;
  let token: string;
  beforeAll(async () => {
    service = await testService();
    app = await openApp(service.url);
    const registered = await app.call<Registration>('POST', '/v2/devices', configuration);
    uuid = registered.deviceAuthUuid;
    const login = { email: app.email, password: 'correct horse battery' };
    const { accountAuthToken } = await app.call<{ accountAuthToken: string }>(
      'POST',
      '/v2/accounts/login',
      login,
    );
    token = accountAuthToken;
  });
  afterAll(() => service.close());

  const get = (path: string) =>
    fetch(service.url + path, { headers: { authorization: `Bearer ${token}` } });
  const warningsOf = (response: Response) =>
    JSON.parse(response.headers.get('x-warnings') ?? '[]') as Problem[];

  test('are listed in X-Warnings on routes of the specification, whose answers stay the same', async () => {
    const plain = await get('/v2/devices?label=x');
    const misspelt = await get('/v2/devices?label=x&labels=y&%C3%BC=1');
    expect([plain.status, misspelt.status]).toEqual([200, 200]);
    expect(warningsOf(plain)).toEqual([]);
    expect(warningsOf(misspelt)).toEqual([
      { path: 'labels', message: 'is not a parameter of this route: did you mean label?' },
      {
        path: 'ü',
        message: expect.stringMatching(/^is not a parameter of this route: known are /),
      },
    ]);
    const body = (await misspelt.json()) as { devices: unknown[] };
    expect(body.devices).toEqual(((await plain.json()) as typeof body).devices);
  });

  test.each([
    ['/v2/alarms?stat=open', 'stat', 'did you mean state?'],
    ['/v2/measurements/UUID?sense=0x99', 'sense', 'did you mean senses?'],
    ['/v2/measurements?label=x&from=1', 'from', 'known are devices,'],
    ['/v2/accounts/usage?limit=1', 'limit', 'known are none'],
  ])('are refused by name elsewhere: %s', async (path, name, hint) => {
    const response = await get(path.replace('UUID', uuid));
    const { errors } = (await response.json()) as { errors: Problem[] };
    expect(response.status).toBe(400);
    expect(errors).toEqual([{ path: name, message: expect.stringContaining(hint) }]);
  });

  test.each([
    ['type=device&senses=0x1', 'senses', 'has no senses'],
    ['start=2026-11-24T00:00:00Z&end=2026-11-23', 'start', 'later than end'],
  ])('filters that exclude each other are told as well: %s', async (query, path, message) => {
    const problem = { path, message: expect.stringContaining(message) as string };
    const specified = await get(`/v2/events/${uuid}?${query}`);
    expect([specified.status, await specified.json()]).toMatchObject([200, { events: [] }]);
    expect(warningsOf(specified)).toEqual([problem]);
    const own = await get(`/v2/events?devices=${uuid}&${query}`);
    expect([own.status, await own.json()]).toMatchObject([400, { errors: [problem] }]);
  });

  test.each(['type=device&senses=', 'type=sense&senses=0x1', 'start=1&end=1'])(
    'filters that something may match are not: %s',
    async (query) => {
      expect(warningsOf(await get(`/v2/events/${uuid}?${query}`))).toEqual([]);
      expect((await get(`/v2/events?devices=${uuid}&${query}`)).status).toBe(200);
    },
  );

  test('the header of warnings has a maximum length, however many there are', async () => {
    const names = Array.from({ length: 500 }, (_, n) => `unknown${n}=1`).join('&');
    const response = await get(`/v2/accounts?${names}`);
    expect(response.status).toBe(200);
    const length = response.headers.get('x-warnings')?.length ?? 0;
    expect(length).toBeGreaterThan(1_000);
    expect(length).toBeLessThanOrEqual(2_000);
    expect(warningsOf(response)[0]?.path).toBe('unknown0');
  });

  test.each([
    ['start=2026-11-26T04:54:48+02:00', 'start', 'contains a space instead of +'],
    ['end=2026-11-26T04:54+0200', 'end', 'contains a space instead of +'],
    ['senses=0x10&senses=0x11', 'senses', 'is given more than once'],
  ])('are refused where they cannot be meant so: %s', async (query, name, hint) => {
    const response = await get(`/v2/measurements/${uuid}?${query}`);
    const { errors } = (await response.json()) as { errors: Problem[] };
    expect(response.status).toBe(400);
    expect(errors).toEqual([{ path: name, message: expect.stringContaining(hint) }]);
  });

  test('an encoded plus is a plus', async () => {
    const response = await get(`/v2/measurements/${uuid}?start=2026-11-26T04:54:48%2B02:00`);
    expect(response.status).toBe(200);
  });

  test('a time in seconds causes a warning, and is used as it is written', async () => {
    const told = { message: 'looks like seconds: expected milliseconds since 1970' };
    const response = await get(`/v2/events/${uuid}?start=1795600000&end=1795700000`);
    expect(response.status).toBe(200);
    expect(warningsOf(response)).toEqual([
      { path: 'start', ...told },
      { path: 'end', ...told },
    ]);
    expect(warningsOf(await get(`/v2/events/${uuid}?start=1795600000000`))).toEqual([]);
    expect(warningsOf(await get(`/v2/measurements/${uuid}?start=0`))).toEqual([]);
  });
});
