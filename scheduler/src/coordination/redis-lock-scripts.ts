import { redisScript } from "./redis-connection.ts";

/**
 * The beginning of every script that takes. A fence is a base from outside and a count from here: base × 2^32 + count.
 * A server whose memory may be older than what it acknowledged (another run id or replication id), or is gone, asks
 * for a new base first, and takes it only in answer to the question it remembers: one fetched before a later loss
 * might lie below what was given meanwhile. Texts, because Lua's numbers end at 2^53.
 */
const fencing = `
local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
local server = string.match(info, 'run_id:(%w+)') .. string.match(info, 'master_replid:(%w+)')
local function fence(base, question, asked)
  local kept = redis.call('HMGET', KEYS[2], 'server', 'question')
  if kept[1] ~= server then
    if not kept[2] or string.sub(kept[2], -#server) ~= server then
      kept[2] = question .. server
      redis.call('HSET', KEYS[2], 'question', kept[2])
    end
    if base == '' or asked ~= kept[2] then return nil, kept[2] end
    redis.call('HSET', KEYS[2], 'server', server, 'value', base)
    redis.call('HDEL', KEYS[2], 'question')
  end
  redis.call('HINCRBY', KEYS[2], 'value', 1)
  return redis.call('HGET', KEYS[2], 'value')
end
`;

/**
 * An answer was lost: it is held by this very request, and nobody has counted on. Unless the server forgot something:
 * then another may have, and this one is to be given up for a new one.
 */
const mine = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  local kept = redis.call('HMGET', KEYS[2], 'server', 'value')
  if kept[1] == server then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return {1, kept[2]}
  end
  redis.call('DEL', KEYS[1])
end
`;

/** KEYS: holder, fence. ARGV: token, ttl, base, question, asked. @returns {1, fence}, {0, ms left} or {2, question} */
export const take = redisScript(`${fencing}${mine}
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 then return {0, left} end
local value, question = fence(ARGV[3], ARGV[4], ARGV[5])
if not value then return {2, question} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, value}
`);

/**
 * The same in a queue. KEYS as above and: queue (token → turn), deadlines (token → until when it waits, by Redis's
 * clock: a step of it may cost somebody's turn, and no more). Those who stopped asking lose their place.
 */
export const takeInTurn = redisScript(`${fencing}${mine}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local token, ttl = ARGV[1], tonumber(ARGV[2])
for _, lost in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now)) do
  redis.call('ZREM', KEYS[3], lost)
  redis.call('ZREM', KEYS[4], lost)
end
if not redis.call('ZSCORE', KEYS[3], token) then
  redis.call('ZADD', KEYS[3], redis.call('HINCRBY', KEYS[2], 'turn', 1), token)
end
redis.call('ZADD', KEYS[4], now + ttl, token)
for i = 3, 4 do redis.call('PEXPIRE', KEYS[i], ttl * 2) end
local first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
local left = redis.call('PTTL', KEYS[1])
if first ~= token then return {0, -1} end
if left ~= -2 then return {0, left} end
local value, question = fence(ARGV[3], ARGV[4], ARGV[5])
if not value then return {2, question} end
redis.call('ZREM', KEYS[3], token)
redis.call('ZREM', KEYS[4], token)
redis.call('SET', KEYS[1], token, 'PX', ttl)
return {1, value}
`);

/** KEYS: holder. ARGV: token, ttl. Redis keeps what it is told, so one that lapsed is not brought back. */
export const renew = redisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`);

/** KEYS: holder, queue, deadlines. ARGV: token, channel. Leaves the queue, or gives the lock up and tells who is next. */
export const release = redisScript(`
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then redis.call('DEL', KEYS[1]) end
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if first and (not held or held == ARGV[1]) then redis.call('PUBLISH', ARGV[2], first) end
return held == ARGV[1] and 1 or 0
`);

/** KEYS: cluster. ARGV: the cluster's id. As the registry has it: one prefix, one cluster. */
export const own = redisScript(`
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return redis.error_reply('FOREIGN ' .. owner) end
if not owner then redis.call('SET', KEYS[1], ARGV[1]) end
return 1
`);
