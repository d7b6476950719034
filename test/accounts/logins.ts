import { closeRedis, connectRedis } from '../../src/lib/redis.ts';
import { canOpenRedis, openRedis } from '../support/redis.ts';
import { type Answer, startApp } from './app.ts';

export const password = 'correct horse';

/** The session stores available on this machine, for `describe.each(sessionStores)`. */
export const sessionStores = canOpenRedis ? ['database', 'redis'] : ['database'];

export type Logins = Awaited<ReturnType<typeof startLogins>>;

/** The accounts' part of the service, with its sessions in that store. */
export async function startLogins(store: string) {
  const redis = store === 'redis' ? await openRedis() : undefined;
  const app = await startApp({ redisUrl: redis?.url });
  let accounts = 0;
  return {
    ...app,
    redisUrl: redis?.url,
    async newAccount() {
      const email = `${store}-${(accounts += 1)}@example.com`;
      return { email, ...(await app.register(email)) };
    },
    logInV1: async (email: string) =>
      pairOf(await app.call('POST', '/v1/auth/login', { body: { email, password } })),
    refresh: (token: string | undefined, refreshToken: unknown) =>
      app.call('POST', '/v1/auth/refresh', { token, body: { refreshToken } }),
    /** What the store contains of rotated refresh tokens. */
    async keptSuccessors(): Promise<string[]> {
      if (redis) return readSuccessors(redis.url);
      const { rows } = await app.db.query<{ successor: string }>(
        'select successor from session where successor is not null',
      );
      return rows.map(({ successor }) => successor);
    },
    /** The status of a request with this token. */
    opens: async (token: string) => (await app.call('GET', '/v2/accounts', { token })).status,
    async close() {
      await app.close();
      await redis?.close();
    },
  };
}

/** The tokens in the answer to a login or a refresh of version 1. */
export function pairOf({ body }: Answer) {
  return body['data'] as { token: string; refreshToken: string };
}

async function readSuccessors(url: string): Promise<string[]> {
  const redis = await connectRedis({ url, onError: () => {} });
  const keys = await redis.keys('sensorium:rotated:*');
  const kept = await Promise.all(keys.map((key) => redis.hget(key, 'successor')));
  await closeRedis(redis);
  return kept.flatMap((text) => (text === null ? [] : [text]));
}
