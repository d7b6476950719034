import { aheadMs } from './store.ts';

// Redis runs a script as one step: nothing comes between its commands.

/**
 * KEYS: session, refresh, list. ARGV: session as JSON, refresh hash or '', expiry in ms, session id,
 * the prefix of all keys, how many sessions there may be. Makes room, and answers which were ended:
 * first those never used since their login, then the least recently used.
 */
export const createScript = `
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

/** KEYS: session, list. ARGV: session as JSON, expiry in ms, last use in ms. Never brings one back. */
export const touchScript = `
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
 * KEYS: session, refresh, list, rotated. ARGV: old hash, new hash, session as JSON, expiry in ms,
 * session id, the present in ms, how long the old token gives its successor, the successor.
 * Answers the outcome, and for `again` the successor.
 */
export const rotateScript = `
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

/** KEYS: list. ARGV: the prefix of all keys. Revokes whatever the list names, and what joined it meanwhile. */
export const revokeAllScript = `
for _, id in ipairs(redis.call('smembers', KEYS[1])) do
  local prefix = ARGV[1]
  redis.call('del', prefix .. 'session:' .. id, prefix .. 'refresh:' .. id, prefix .. 'rotated:' .. id)
end
return redis.call('del', KEYS[1])
`;
