// Redis runs a script as one step: nothing comes between its commands.

/**
 * KEYS: session, refresh, list. ARGV: old hash, new hash, session as JSON, expiry in ms, session id.
 * Answers a `Rotation`.
 */
export const rotateScript = `
local current = redis.call('get', KEYS[2])
if not current or redis.call('exists', KEYS[1]) == 0 then
  return 'unknown'
end
if current ~= ARGV[1] then
  redis.call('del', KEYS[1], KEYS[2])
  redis.call('srem', KEYS[3], ARGV[5])
  return 'reused'
end
redis.call('set', KEYS[1], ARGV[3], 'PXAT', ARGV[4])
redis.call('set', KEYS[2], ARGV[2], 'PXAT', ARGV[4])
redis.call('pexpireat', KEYS[3], ARGV[4], 'GT')
return 'rotated'
`;

/** KEYS: list. ARGV: the prefix of all keys. Revokes whatever the list names, and what joined it meanwhile. */
export const revokeAllScript = `
for _, id in ipairs(redis.call('smembers', KEYS[1])) do
  redis.call('del', ARGV[1] .. 'session:' .. id, ARGV[1] .. 'refresh:' .. id)
end
return redis.call('del', KEYS[1])
`;
