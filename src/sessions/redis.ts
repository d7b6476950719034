import { z } from 'zod';
import { closeRedis, connectRedis, reachRedis } from '../redis.ts';
import { coalesce } from '../coalesce.ts';
import { revokeAllScript, rotateScript } from './scripts.ts';
import type { Rotation, Session, SessionStore } from './sessions.ts';

export type RedisSessionOptions = {
  url: string;
  /** Keys begin with it: one an installation. */
  prefix?: string;
  onError: (error: Error) => void;
};

const StoredSession = z.object({
  sessionId: z.string(),
  accountId: z.int(),
  accountUuid: z.string(),
  kind: z.enum(['pair', 'account']),
  createdTs: z.int(),
  lastUsedTs: z.int(),
  expiresTs: z.int(),
});

/** Sessions in Redis: `session:{id}` and `refresh:{id}` run out by themselves, `sessions:{account}` lists them. */
export async function startRedisSessions(options: RedisSessionOptions): Promise<SessionStore> {
  const { url, prefix = 'sensorium:', onError } = options;
  const redis = await connectRedis({ url, onError });
  const sessionKey = (id: string) => `${prefix}session:${id}`;
  const refreshKey = (id: string) => `${prefix}refresh:${id}`;
  const listKey = (accountId: number) => `${prefix}sessions:${accountId}`;
  const load = async (ids: string[]): Promise<Map<string, Session>> => {
    if (ids.length === 0) return new Map();
    const texts = await reachRedis(() => redis.mget(ids.map(sessionKey)));
    return new Map(
      texts.flatMap((text) => {
        const session = text === null ? null : StoredSession.parse(JSON.parse(text));
        return session ? [[session.sessionId, session] as const] : [];
      }),
    );
  };
  const { find } = coalesce({ load, parallel: 2 });

  return {
    async create(session, refreshHash) {
      const { sessionId, accountId, expiresTs } = session;
      const steps = redis
        .multi()
        .set(sessionKey(sessionId), JSON.stringify(session), 'PXAT', expiresTs)
        .sadd(listKey(accountId), sessionId)
        .pexpireat(listKey(accountId), expiresTs, 'NX')
        .pexpireat(listKey(accountId), expiresTs, 'GT');
      if (refreshHash !== undefined) {
        steps.set(refreshKey(sessionId), refreshHash, 'PXAT', expiresTs);
      }
      await reachRedis(() => steps.exec());
    },
    async find(sessionId, nowTs) {
      const session = await find(sessionId);
      return session && session.expiresTs > nowTs ? session : null;
    },
    async touch(session) {
      const { sessionId, accountId, expiresTs } = session;
      await reachRedis(() =>
        redis
          .multi()
          .set(sessionKey(sessionId), JSON.stringify(session), 'PXAT', expiresTs, 'XX')
          .pexpireat(listKey(accountId), expiresTs, 'GT')
          .exec(),
      );
    },
    async rotate(session, oldHash, newHash) {
      const { sessionId, accountId, expiresTs } = session;
      const keys = [sessionKey(sessionId), refreshKey(sessionId), listKey(accountId)];
      const values = [oldHash, newHash, JSON.stringify(session), expiresTs, sessionId];
      return (await reachRedis(() => redis.eval(rotateScript, 3, ...keys, ...values))) as Rotation;
    },
    async list(accountId, nowTs) {
      const ids = await reachRedis(() => redis.smembers(listKey(accountId)));
      const found = await load(ids);
      const gone = ids.filter((id) => !found.has(id));
      if (gone.length > 0) await reachRedis(() => redis.srem(listKey(accountId), ...gone));
      const sessions = [...found.values()].filter(({ expiresTs }) => expiresTs > nowTs);
      return sessions.toSorted((a, b) => b.createdTs - a.createdTs);
    },
    async revoke(accountId, sessionId) {
      const session = await find(sessionId);
      if (session?.accountId !== accountId) return false;
      const results = await reachRedis(() =>
        redis
          .multi()
          .del(sessionKey(sessionId))
          .del(refreshKey(sessionId))
          .srem(listKey(accountId), sessionId)
          .exec(),
      );
      return results?.[0]?.[1] === 1;
    },
    async revokeAll(accountId) {
      await reachRedis(() => redis.eval(revokeAllScript, 1, listKey(accountId), prefix));
    },
    close: () => closeRedis(redis),
  };
}
