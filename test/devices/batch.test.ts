import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, openAccount, type Answer } from '../idempotency/repeat.ts';
import { connectDevice } from '../journeys/device.ts';
import { configuration, type Registration } from '../journeys/app.ts';
import { testService, type TestService } from '../journeys/service.ts';

const most = 1_000;

let service: TestService;
let token: string;
beforeAll(async () => {
  service = await testService(
    {},
    { change: (config) => ({ ...config, quotas: { ...config.quotas, devices: 1_500 } }) },
  );
});
afterAll(() => service?.close());

const path = '/v2/devices/batch';
const named = (name: string) => ({ ...configuration, device: { name } });
const many = (count: number) => Array.from({ length: count }, (_, n) => named(`device ${n}`));
const register = (body: unknown, key?: string, query = '') =>
  ask(service.url, { path: path + query, token, body, ...(key === undefined ? {} : { key }) });

/** Sends the text unchanged. */
async function send(text: string): Promise<{ status: number; text: string }> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const answer = await fetch(service.url + path, { method: 'POST', headers, body: text });
  return { status: answer.status, text: await answer.text() };
}

async function listNames(): Promise<string[]> {
  const { body } = await ask(service.url, { method: 'GET', path: '/v2/devices', token });
  return (body['devices'] as { name: string }[]).map(({ name }) => name);
}

async function used(quota: string): Promise<number> {
  const { body } = await ask(service.url, { method: 'GET', path: '/v2/accounts/usage', token });
  return (body['usage'] as { quota: string; used: number }[]).find((one) => one.quota === quota)
    ?.used as number;
}

const devicesOf = ({ body }: Answer) => body['devices'] as Registration[];
const pathsOf = ({ body }: Answer) => (body['errors'] as { path: string }[]).map((one) => one.path);

describe('many devices at once', () => {
  beforeAll(async () => {
    token = await openAccount(service.url);
  });

  test('are registered in the order of the request, and can connect', async () => {
    const answer = await register({ devices: many(most) });
    expect(answer.status, answer.text).toBe(200);
    const devices = devicesOf(answer);
    expect(new Set(devices.map(({ deviceAuthUuid }) => deviceAuthUuid)).size).toBe(most);
    expect(await used('devices')).toBe(most);
    for (const n of [0, 49, 50, 777, 999]) {
      const at = `/v2/devices/${devices[n]?.deviceAuthUuid}/configuration`;
      const { body } = await ask(service.url, { method: 'GET', path: at, token });
      expect(body['device']).toEqual({ name: `device ${n}` });
    }
    const client = await connectDevice(devices[998] as Registration);
    await client.publish('up/measurements', { sId: '0x01', val: 1 });
    await client.end();
  });

  test('are all refused over a quota, which is exact', async () => {
    const refused = await register({ devices: many(501) });
    expect(refused.status).toBe(403);
    expect(refused.body).toMatchObject({ quota: 'devices', limit: 1_500, used: most });
    expect(await used('devices')).toBe(most);
    expect((await register({ devices: many(500) })).status).toBe(200);
    expect((await register({ devices: many(1) })).status).toBe(403);
    expect((await listNames()).length).toBe(1_500);
  });
});

describe('a problem', () => {
  beforeAll(async () => {
    token = await openAccount(service.url);
  });

  test('names the place of the device, and nothing is registered', async () => {
    const wrong = { ...configuration, module: [{ moduleId: 'm', senses: [{ sId: 'x' }] }] };
    const long = named('x'.repeat(201));
    expect(pathsOf(await register({ devices: [configuration, wrong, configuration] }))).toEqual([
      '/devices/1/module/0/senses/0/sId',
    ]);
    expect(pathsOf(await register({ devices: [configuration, 7, long] }))).toEqual(['/devices/1']);
    expect(pathsOf(await register({ devices: [configuration, long] }))).toEqual([
      '/devices/1/device/name',
    ]);
    expect(await listNames()).toEqual([]);
  });

  test('with an unknown member is a warning, or refused in strict mode', async () => {
    const odd = { ...configuration, colour: 'red' };
    const strict = await register({ devices: [configuration, odd] }, undefined, '?strict=true');
    expect([strict.status, pathsOf(strict)]).toEqual([400, ['/devices/1/colour']]);
    const { body } = await register({ devices: [configuration, odd] });
    expect(body['warnings']).toMatchObject([{ path: '/devices/1/colour', code: 'unknown-member' }]);
  });

  const refused: [string, string, string][] = [
    ['no list', '{"device":{}}', 'is not JSON of the form { \\"devices\\"'],
    ['no JSON', '{"devices":[{]}', '/devices/0'],
    ['an end that is missing', '{"devices":[{"device":{},"module":[]}', '/devices/0'],
    [
      'an end of the body that is missing',
      '{"devices":[{"device":{},"module":[]}]',
      'is not JSON of the form {',
    ],
    [
      'a member beside it',
      '{"devices":[{"device":{},"module":[]}],"x":1}',
      'is not JSON of the form {',
    ],
    [
      'what comes after it',
      '{"devices":[{"device":{},"module":[]}]}{}',
      'is not JSON of the form {',
    ],
    ['no device', '{"devices":[]}', '/devices'],
    ['a comma too many', '{"devices":[{"device":{},"module":[]},]}', '/devices/1'],
    ['a NUL', '{"devices":[{"device":{"name":"\\u0000"},"module":[]}]}', '/devices/0/device/name'],
    [
      'too much in one of them',
      `{"devices":[${'['.repeat(3)}${'1,'.repeat(20_001)}1]]]]}`,
      '/devices/0',
    ],
    ['one that nests too deep', `{"devices":[${'['.repeat(70)}${']'.repeat(70)}]}`, '/devices/0'],
    ['one too many', `{"devices":[${'1,'.repeat(most)}1]}`, '/devices'],
  ];
  test.each(refused)('%s is 400', async (_what, text, said) => {
    const answer = await send(text);
    expect(answer.status, answer.text).toBe(400);
    expect(answer.text).toContain(said);
  });

  test('a body over 4 MiB is 413, and a smaller one is accepted whatever its parts', async () => {
    const spaces = ' '.repeat(4_194_304);
    expect((await send(`{"devices":[${spaces}]}`)).status).toBe(413);
    const senses = Array.from({ length: 500 }, (_, n) => ({
      sId: `0x${n.toString(16)}`,
      name: `sense number ${n} of this device`,
    }));
    const large = { device: {}, module: [{ moduleId: 'm', senses }] };
    const body = { devices: Array.from({ length: 120 }, () => large) };
    const length = JSON.stringify(body).length;
    expect(length).toBeGreaterThan(3_000_000);
    const answer = await register(body);
    expect(answer.status, answer.text.slice(0, 500)).toBe(200);
  });
});

test('a repetition gets the same answer, although it is too long to be stored', async () => {
  token = await openAccount(service.url);
  const body = { devices: many(400) };
  const key = crypto.randomUUID();
  const first = await register(body, key);
  expect(first.text.length).toBeGreaterThan(65_536);
  expect(await register(body, key)).toEqual(first);
  expect(await used('devices')).toBe(400);
  body.devices.pop();
  expect((await register(body, key)).status).toBe(422);
});
