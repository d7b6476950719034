import { afterEach, describe, expect, test } from 'vitest';
import { canOpenRedis, openRedis, type OpenRedis } from '../support/redis.ts';
import { type App, startApp } from './app.ts';
import { password } from './logins.ts';

describe.each(canOpenRedis ? ['memory', 'redis'] : ['memory'])(
  '4.2 logins, counted in %s',
  (kind) => {
    let apps: App[] = [];
    let redis: OpenRedis | undefined;
    afterEach(async () => {
      for (const app of apps.reverse()) await app.close();
      apps = [];
      await redis?.close();
      redis = undefined;
    });
    async function start(database?: App['database'], loginsOf?: (email: string) => number) {
      redis ??= kind === 'redis' ? await openRedis() : undefined;
      const app = await startApp({
        logins: { loginsPerAccount: 3, loginsPerAddress: 5, ...(loginsOf && { loginsOf }) },
        redisUrl: redis?.url,
        database,
        http: { trustedProxies: ['127.0.0.1'] },
      });
      apps.push(app);
      for (const name of ['ada', 'bob', 'cy']) await app.register(`${name}@example.com`);
      return app;
    }
    const logIn = (app: App, address: string, name: string, secret = password) =>
      app.call('POST', '/v2/accounts/login', {
        body: { email: `${name}@example.com`, password: secret },
        headers: { 'x-forwarded-for': address },
      });
    const statusOf = async (...args: Parameters<typeof logIn>) => (await logIn(...args)).status;

    test('successful ones count too, exactly, however many come at once', async () => {
      const app = await start();
      const statuses = await Promise.all(
        Array.from({ length: 12 }, () => statusOf(app, '10.0.0.1', 'ada')),
      );
      expect(statuses.toSorted()).toEqual([...Array(3).fill(200), ...Array(9).fill(429)]);
      const { headers, body } = await logIn(app, '10.0.0.1', 'ada');
      expect(body).toMatchObject({ type: 'urn:sensorium:error:too-many-requests' });
      const seconds = Number(headers.get('retry-after'));
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThanOrEqual(60);
      expect(headers.get('ratelimit-policy')).toBe('"loginsPerAccount";q=3;w=60');
      expect(headers.get('ratelimit')).toBe(`"loginsPerAccount";r=0;t=${seconds}`);
      // Logins from another address still work.
      expect(await statusOf(app, '10.0.0.2', 'ada')).toBe(200);
    });

    test('an account may have a limit of its own, which does not affect others', async () => {
      const app = await start(undefined, (email) => (email === 'ada@example.com' ? 4 : 3));
      const count = async (name: string) => {
        const tries = Array.from({ length: 8 }, () => statusOf(app, '10.0.0.1', name));
        return (await Promise.all(tries)).filter((status) => status === 200).length;
      };
      expect([await count('ADA'), await count('bob')]).toEqual([4, 1]);
      const { headers } = await logIn(app, '10.0.0.1', 'ada');
      expect(headers.get('ratelimit-policy')).toBe('"loginsPerAccount";q=4;w=60');
    });

    test('a login refused for its account does not count for its address, nor the other way round', async () => {
      const app = await start();
      for (let i = 0; i < 3; i += 1) expect(await statusOf(app, '10.0.0.1', 'ada')).toBe(200);
      for (let i = 0; i < 20; i += 1) expect(await statusOf(app, '10.0.0.1', 'ada')).toBe(429);
      expect(await statusOf(app, '10.0.0.1', 'bob', 'wrong')).toBe(401);
      expect(await statusOf(app, '10.0.0.1', 'bob')).toBe(200);
      for (let i = 0; i < 5; i += 1) {
        const { status, headers } = await logIn(app, '10.0.0.1', 'cy');
        expect([status, headers.get('ratelimit-policy')]).toEqual([
          429,
          '"loginsPerAddress";q=5;w=60',
        ]);
      }
      expect(await statusOf(app, '10.0.0.2', 'cy')).toBe(200);
    });

    test.skipIf(kind === 'memory')('count for all processes together', async () => {
      const one = await start();
      const other = await start(one.database);
      const statuses: number[] = [];
      for (const app of [one, other, one, other])
        statuses.push(await statusOf(app, '10.0.0.1', 'ada'));
      expect(statuses).toEqual([200, 200, 200, 429]);
    });
  },
);

test('what is longer than any address or password is refused as wrong', async () => {
  const app = await startApp();
  try {
    await app.register('ada@example.com');
    const body = { email: 'ada@example.com', password: password.padEnd(60_000, 'x') };
    expect((await app.call('POST', '/v2/accounts/login', { body })).status).toBe(401);
    const email = 'ada@example.com'.padEnd(60_000, 'x');
    expect(
      (await app.call('POST', '/v2/accounts/login', { body: { email, password } })).status,
    ).toBe(401);
  } finally {
    await app.close();
  }
});
