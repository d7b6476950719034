import { z } from 'zod';
import { coalesce } from '../lib/coalesce.ts';
import { closeRedis, connectRedis, reachRedis } from '../lib/redis.ts';
import { againMs, aheadMs, type RefreshOutcome, type Session, type SessionStore } from './store.ts';

type RedisSessionOptions = {
  url: string;
  /** Prefix of all keys; each installation has its own. */
  prefix?: string;
  onError: (error: Error) => void;
  /** Called when Redis is reachable again. */
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
 * Sessions in Redis: `session:{id}`, `refresh:{id}` and `rotated:{id}` expire by themselves; `sessions:{account}` lists
 * them.
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

// Redis runs a script atomically.

/**
 * KEYS: session, refresh, list. ARGV: session as JSON, refresh hash or '', expiry in ms, session id, the prefix of all
 * keys, how many sessions there may be. Makes room for the new session and returns the sessions that it ended: first
 * those never used since their login, then the least recently used.
 */
const createScript = `
local latest = cjson.decode(ARGV[1]).createdTs + ${aheadMs}
local others = {}
for _, id in ipairs(redis.call('smembers', KEYS[3])) do
  local text = redis.call('get', ARGV[5] .. 'session:' .. id)
  if text then
    local session = cjson.decode(text)
    local ahead = session.createdTs > latest
    local unused = ahead or session.lastUsedTs <= session.createdTs
    table.insert(others, { id = id, unused = unused, ts = session.lastUsedTs })
  else
    redis.call('srem', KEYS[3], id)
  end
end
table.sort(others, function (a, b)
  if a.unused ~= b.unused then return a.unused end
  if a.ts ~= b.ts then return a.ts < b.ts end
  return a.id < b.id
end)
local ended = {}
for place = 1, #others - tonumber(ARGV[6]) + 1 do
  local id = others[place].id
  local prefix = ARGV[5]
  redis.call('del', prefix .. 'session:' .. id, prefix .. 'refresh:' .. id, prefix .. 'rotated:' .. id)
  redis.call('srem', KEYS[3], id)
  table.insert(ended, id)
end
redis.call('set', KEYS[1], ARGV[1], 'PXAT', ARGV[3])
if ARGV[2] ~= '' then
  redis.call('set', KEYS[2], ARGV[2], 'PXAT', ARGV[3])
end
redis.call('sadd', KEYS[3], ARGV[4])
redis.call('pexpireat', KEYS[3], ARGV[3], 'NX')
redis.call('pexpireat', KEYS[3], ARGV[3], 'GT')
return ended
`;

/** KEYS: session, list. ARGV: session as JSON, expiry in ms, last use in ms. Never restores a revoked session. */
const touchScript = `
local text = redis.call('get', KEYS[1])
if not text then
  return
end
local used = cjson.decode(text).lastUsedTs
if used >= tonumber(ARGV[3]) and used <= tonumber(ARGV[3]) + ${aheadMs} then
  return
end
redis.call('set', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
redis.call('pexpireat', KEYS[2], ARGV[2], 'GT')
`;

/**
 * KEYS: session, refresh, list, rotated. ARGV: old hash, new hash, session as JSON, expiry in ms, session id, the
 * current time in ms, how long the old token may be exchanged again (ms), the successor. Returns the outcome and, for
 * `again`, the successor.
 */
const rotateScript = `
local current = redis.call('get', KEYS[2])
if not current or redis.call('exists', KEYS[1]) == 0 then
  return { 'unknown' }
end
if current ~= ARGV[1] then
  local rotated = redis.call('hmget', KEYS[4], 'hash', 'ts', 'successor')
  if rotated[1] == ARGV[1] and tonumber(ARGV[6]) - tonumber(rotated[2]) < tonumber(ARGV[7]) then
    return { 'again', rotated[3] }
  end
  redis.call('del', KEYS[1], KEYS[2], KEYS[4])
  redis.call('srem', KEYS[3], ARGV[5])
  return { 'reused' }
end
redis.call('set', KEYS[1], ARGV[3], 'PXAT', ARGV[4])
redis.call('set', KEYS[2], ARGV[2], 'PXAT', ARGV[4])
redis.call('pexpireat', KEYS[3], ARGV[4], 'GT')
redis.call('hset', KEYS[4], 'hash', ARGV[1], 'ts', ARGV[6], 'successor', ARGV[8])
redis.call('pexpire', KEYS[4], ARGV[7])
return { 'rotated' }
`;

/** KEYS: list. ARGV: the prefix of all keys. Revokes all sessions in the list, including any just added. */
const revokeAllScript = `
for _, id in ipairs(redis.call('smembers', KEYS[1])) do
  local prefix = ARGV[1]
  redis.call('del', prefix .. 'session:' .. id, prefix .. 'refresh:' .. id, prefix .. 'rotated:' .. id)
end
return redis.call('del', KEYS[1])
`;
