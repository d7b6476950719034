import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type App, startApp } from '../accounts/app.ts';
import { hasRedis, type Redis, startRedis } from '../support/redis.ts';

describe.skipIf(!hasRedis)('Redis', () => {
  let redis: Redis;
  let app: App;
  let token: string;
  beforeAll(async () => {
    redis = await startRedis();
    app = await startApp({ redisUrl: redis.url });
    ({ token } = await app.register('ada@example.com'));
  });
  afterAll(async () => {
    await app.close();
    await redis.kill();
  });

  const get = (bearer: string) => app.call('GET', '/v2/accounts', { token: bearer });
  const body = { email: 'ada@example.com', password: 'correct horse' };
  const logIn = () => app.call('POST', '/v2/accounts/login', { body });
  async function expectUnavailable(answer: ReturnType<typeof get>) {
    const { status, headers } = await answer;
    expect(status).toBe(503);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
  const recovered = (bearer: string, status: number) =>
    vi.waitFor(async () => expect((await get(bearer)).status).toBe(status), { timeout: 60_000 });

  test('hangs: 503 with Retry-After while it does, then everything works again by itself', async () => {
    redis.pause();
    try {
      await expectUnavailable(get(token));
      await expectUnavailable(logIn());
    } finally {
      redis.resume();
    }
    await recovered(token, 200);
  });

  test('is gone: the same, nothing half done, and no lost token becomes valid again', async () => {
    const { token: revoked } = await app.register('grace@example.com');
    expect((await app.call('DELETE', '/v2/accounts', { token: revoked })).status).toBe(200);
    await redis.kill();
    await expectUnavailable(get(token));
    await expectUnavailable(logIn());
    await expectUnavailable(app.call('DELETE', '/v2/accounts', { token }));
    const change = { oldPassword: body.password, newPassword: 'battery staple' };
    await expectUnavailable(app.call('PUT', '/v2/accounts/password', { token, body: change }));
    await redis.restart();
    await recovered(token, 401);
    expect((await get(revoked)).status).toBe(401);
    // The account and its password are unchanged.
    const again = await logIn();
    expect(again.status).toBe(200);
    expect((await get(String(again.body['accountAuthToken']))).status).toBe(200);
  });
});
