import { afterEach, describe, expect, test } from 'vitest';
import { canOpenRedis, openRedis, type OpenRedis } from '../support/redis.ts';
import { testService } from '../journeys/service.ts';
import { type App, startApp, type AppOptions } from './app.ts';

describe.each(canOpenRedis ? ['memory', 'redis'] : ['memory'])(
  '4.2 registrations, counted in %s',
  (kind) => {
    let apps: App[] = [];
    let redis: OpenRedis | undefined;
    afterEach(async () => {
      for (const app of apps.reverse()) await app.close();
      apps = [];
      await redis?.close();
      redis = undefined;
    });
    async function start(options: AppOptions = {}) {
      redis ??= kind === 'redis' ? await openRedis() : undefined;
      const http = { trustedProxies: ['127.0.0.1'] };
      const app = await startApp({
        ...options,
        http,
        redisUrl: redis?.url,
        registrationsPerAddress: 3,
      });
      apps.push(app);
      return app;
    }
    const register = (app: App, address: string, email: string) =>
      app.call('POST', '/v2/accounts', {
        body: { email, password: 'correct horse' },
        headers: { 'x-forwarded-for': address },
      });

    test('over the limit answer 429 with Retry-After, however many come at once', async () => {
      const app = await start();
      const attempts = Array.from({ length: 8 }, (_, i) => register(app, '10.0.0.1', `${i}@a.org`));
      const statuses = (await Promise.all(attempts)).map(({ status }) => status);
      expect(statuses.toSorted()).toEqual([200, 200, 200, 429, 429, 429, 429, 429]);
      const refused = await register(app, '10.0.0.1', 'late@a.org');
      expect(refused.status).toBe(429);
      expect(refused.body).toMatchObject({ detail: expect.stringContaining('registrations') });
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await register(app, '10.0.0.2', 'late@a.org')).status).toBe(200);
    });

    test('count if the e-mail address is taken, and not if the input is invalid', async () => {
      const app = await start();
      for (let i = 0; i < 5; i += 1) {
        expect((await register(app, '10.0.0.1', 'no address')).status).toBe(400);
      }
      expect((await register(app, '10.0.0.1', 'ada@a.org')).status).toBe(200);
      expect((await register(app, '10.0.0.1', 'ada@a.org')).status).toBe(409);
      expect((await register(app, '10.0.0.1', 'ada@a.org')).status).toBe(409);
      expect((await register(app, '10.0.0.1', 'ada@a.org')).status).toBe(429);
    });

    test.skipIf(kind === 'memory')('count for all processes together', async () => {
      const one = await start();
      const other = await start({ database: one.database });
      for (const i of [1, 2, 3]) await register(one, '10.0.0.1', `${i}@a.org`);
      expect((await register(other, '10.0.0.1', '4@a.org')).status).toBe(429);
    });

    test('do not prevent anybody from logging in', async () => {
      const app = await start();
      for (let i = 0; i < 5; i += 1) await register(app, '10.0.0.1', 'ada@a.org');
      const { status } = await app.call('POST', '/v2/accounts/login', {
        body: { email: 'ada@a.org', password: 'correct horse' },
        headers: { 'x-forwarded-for': '10.0.0.1' },
      });
      expect(status).toBe(200);
    });
  },
);

test('4.2 registrations are limited according to the configuration', async () => {
  const registrationsPerAddress = { attempts: 1, windowSeconds: 60 };
  const service = await testService(
    {},
    {
      change: (config) => ({
        ...config,
        accounts: { ...config.accounts, registrationsPerAddress },
      }),
    },
  );
  const register = async (email: string) => {
    const answer = await fetch(`${service.url}/v2/accounts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password: 'correct horse' }),
    });
    return answer.status;
  };
  try {
    expect([await register('ada@a.org'), await register('bob@a.org')]).toEqual([200, 429]);
  } finally {
    await service.close();
  }
});
