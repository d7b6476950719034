import { z } from 'zod';
import { closeRedis, connectRedis, reachRedis } from '../lib/redis.ts';
import { coalesce } from '../lib/coalesce.ts';
import { createScript, revokeAllScript, rotateScript, touchScript } from './scripts.ts';
import { againMs, type RefreshOutcome, type Session, type SessionStore } from './store.ts';

export type RedisSessionOptions = {
  url: string;
  /** Keys begin with it: one an installation. */
  prefix?: string;
  onError: (error: Error) => void;
  /** Redis is there again. */
  onBack?: () => void;
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

/**
 * Sessions in Redis: `session:{id}`, `refresh:{id}` and `rotated:{id}` run out by themselves,
 * `sessions:{account}` lists them.
 */
export async function startRedisSessions(options: RedisSessionOptions): Promise<SessionStore> {
  const { url, prefix = 'sensorium:', onError, onBack } = options;
  const redis = await connectRedis({ url, onError, onBack });
  const sessionKey = (id: string) => `${prefix}session:${id}`;
  const refreshKey = (id: string) => `${prefix}refresh:${id}`;
  const rotatedKey = (id: string) => `${prefix}rotated:${id}`;
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
    async create(session, { refreshHash = '', limit }) {
      const { sessionId, accountId, expiresTs } = session;
      const keys = [sessionKey(sessionId), refreshKey(sessionId), listKey(accountId)];
      const values = [JSON.stringify(session), refreshHash, expiresTs, sessionId, prefix, limit];
      const ended = await reachRedis(() => redis.eval(createScript, 3, ...keys, ...values));
      return ended as string[];
    },
    async find(sessionId, nowTs) {
      const session = await find(sessionId);
      return session && session.expiresTs > nowTs ? session : null;
    },
    async touch(session) {
      const { sessionId, accountId, expiresTs, lastUsedTs } = session;
      const keys = [sessionKey(sessionId), listKey(accountId)];
      const values = [JSON.stringify(session), expiresTs, lastUsedTs];
      await reachRedis(() => redis.eval(touchScript, 2, ...keys, ...values));
    },
    async rotate(session, { oldHash, newHash, successor }) {
      const { sessionId: id, accountId, expiresTs, lastUsedTs } = session;
      const keys = [sessionKey(id), refreshKey(id), listKey(accountId), rotatedKey(id)];
      const text = JSON.stringify(session);
      const values = [oldHash, newHash, text, expiresTs, id, lastUsedTs, againMs, successor];
      const answer = await reachRedis(() => redis.eval(rotateScript, 4, ...keys, ...values));
      const [outcome, kept] = answer as [RefreshOutcome['outcome'], string];
      return outcome === 'again' ? { outcome, successor: kept } : { outcome };
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
          .del(refreshKey(sessionId), rotatedKey(sessionId))
          .srem(listKey(accountId), sessionId)
          .exec(),
      );
      return results?.[0]?.[1] === 1;
    },
    async revokeAll(accountId) {
      await reachRedis(() => redis.eval(revokeAllScript, 1, listKey(accountId), prefix));
    },
    async checkWrites() {
      await reachRedis(() => redis.set(`${prefix}health`, '1', 'EX', 60));
    },
    close: () => closeRedis(redis),
  };
}
