import { afterEach, expect, test } from 'vitest';
import { startHttpWorld, type HttpWorld } from './harness.ts';

let world: HttpWorld;
afterEach(() => world.close());

const origin = 'https://app.example';
const measured = { sId: '0x10', val: 21.5 };
const preflight = (path: string, from = origin) =>
  fetch(world.url + path, {
    method: 'OPTIONS',
    headers: {
      origin: from,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    },
  });

test('a page of an allowed origin may be a device: its preflight needs no login, and it can read the answers', async () => {
  world = await startHttpWorld({ http: { corsOrigins: [origin] } });
  const path = world.pathOf('measurements');
  for (const asked of [path, `/devices/${world.device.uuid}/down`]) {
    const { status, headers } = await preflight(asked);
    expect([status, headers.get('access-control-allow-origin')]).toEqual([204, origin]);
    expect(headers.get('access-control-allow-methods')).toBe('GET,POST');
    expect(headers.get('access-control-allow-headers')).toBe('Authorization,Content-Type');
    expect(headers.get('vary')).toBe('Origin');
  }
  const posted = await world.post('measurements', measured, { headers: { origin } });
  expect([posted.status, posted.headers.get('access-control-allow-origin')]).toEqual([200, origin]);
  const refused = await world.send(path, { headers: { origin }, body: '{}' });
  expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([
    401,
    origin,
  ]);
  expect(refused.headers.get('access-control-expose-headers')).toBe('Retry-After');
  const polled = await fetch(`${world.url}/devices/${world.device.uuid}/down?wait=0`, {
    headers: { origin, authorization: world.basic() },
  });
  expect([polled.status, polled.headers.get('access-control-allow-origin')]).toEqual([200, origin]);
});

test('other origins are allowed nothing, and their preflights do not count as refused logins', async () => {
  world = await startHttpWorld({ http: { corsOrigins: [origin] } });
  const path = world.pathOf('measurements');
  for (let n = 0; n < 3; n += 1) {
    const { status, headers } = await preflight(path, 'https://elsewhere.example');
    expect([status, headers.get('access-control-allow-origin')]).toEqual([204, null]);
  }
  expect(world.logged).toEqual([]);
  const { headers } = await world.post('measurements', measured);
  expect(headers.get('access-control-allow-origin')).toBeNull();
});

test('`*` allows every origin', async () => {
  world = await startHttpWorld({ http: { corsOrigins: ['*'] } });
  const { headers } = await preflight(world.pathOf('measurements'));
  expect([headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual(['*', null]);
});
