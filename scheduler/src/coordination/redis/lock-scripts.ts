import { redisScript } from "./connection.ts";

/**
 * The keys of one lock name in Redis:
 *
 *   (the name)   token → until when it holds, by Redis's clock
 *   …:fence      server, value, question: see below. permits: how many may hold. turn: the last one given out
 *   …:queue      token → turn, of the clients that wait in order
 *   …:deadlines  token → until when it waits, by Redis's clock: a step of that clock may at most cost a client its turn
 */
const prelude = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local token = ARGV[1]
local function tell(channel)
  local first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  local permits = tonumber(redis.call('HGET', KEYS[2], 'permits') or 1)
  if first and redis.call('ZCARD', KEYS[1]) < permits then redis.call('PUBLISH', channel, first) end
end
`;

/**
 * A fence is a base from the store and a count from this Redis: base × 2^32 + count. A server first requests a new base if its memory may
 * be older than its acknowledgements (another run id or replication id), is gone, or is of another era. It accepts the base only in answer
 * to the question that it remembers, because a base that was fetched before a later loss might be below fences given meanwhile. Values are
 * texts, because Lua's numbers are exact only up to 2^53.
 */
const fencing = `
local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
local server = string.match(info, 'run_id:(%w+)') .. string.match(info, 'master_replid:(%w+)') .. '.' .. ARGV[6]
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
 * KEYS as above. ARGV: token, ttl, base, question, asked, era, permits, '1' to wait in order, channel.
 *
 * If the token already holds the lock, an earlier request succeeded and its answer was lost: the client gets a new fence, which is safe
 * because no client has seen the first. A server that forgot something drops that token instead, because another client may hold the lock
 * too; the old holding is replaced by a new one. Clients that wait in order and stop asking lose their place.
 * @returns {1, fence}, {0, ms until one may be free, or -1}, {2, question} or {3, the present permits}
 */
export const take = redisScript(`${prelude}${fencing}
local ttl, permits, fair = tonumber(ARGV[2]), tonumber(ARGV[7]), ARGV[8] == '1'
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local mine = redis.call('ZSCORE', KEYS[1], token)
if mine and redis.call('HGET', KEYS[2], 'server') ~= server then
  redis.call('ZREM', KEYS[1], token)
  mine = false
end
if not mine then
  for _, lost in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now)) do
    redis.call('ZREM', KEYS[3], lost)
    redis.call('ZREM', KEYS[4], lost)
  end
  local present = redis.call('HGET', KEYS[2], 'permits')
  if present ~= ARGV[7] then
    if present and redis.call('ZCARD', KEYS[1]) + redis.call('ZCARD', KEYS[3]) > 0 then return {3, present} end
    redis.call('HSET', KEYS[2], 'permits', ARGV[7])
  end
  if fair then
    if not redis.call('ZSCORE', KEYS[3], token) then
      redis.call('ZADD', KEYS[3], redis.call('HINCRBY', KEYS[2], 'turn', 1), token)
    end
    redis.call('ZADD', KEYS[4], now + ttl, token)
    for i = 3, 4 do redis.call('PEXPIRE', KEYS[i], ttl * 2) end
    if redis.call('ZRANGE', KEYS[3], 0, 0)[1] ~= token then return {0, -1} end
  end
  if redis.call('ZCARD', KEYS[1]) >= permits then
    return {0, redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] - now}
  end
end
local value, question = fence(ARGV[3], ARGV[4], ARGV[5])
if not value then return {2, question} end
redis.call('ZREM', KEYS[3], token)
redis.call('ZREM', KEYS[4], token)
redis.call('ZADD', KEYS[1], now + ttl, token)
if redis.call('PTTL', KEYS[1]) < ttl then redis.call('PEXPIRE', KEYS[1], ttl) end
tell(ARGV[9])
return {1, value}
`);

/** KEYS as above. ARGV: token, ttl. A lapsed token is not renewed, even if Redis still has it. */
export const renew = redisScript(`${prelude}
local ttl = tonumber(ARGV[2])
if tonumber(redis.call('ZSCORE', KEYS[1], token) or 0) <= now then return 0 end
redis.call('ZADD', KEYS[1], now + ttl, token)
if redis.call('PTTL', KEYS[1]) < ttl then redis.call('PEXPIRE', KEYS[1], ttl) end
return 1
`);

/** KEYS as above. ARGV: token, channel. Leaves the queue or releases the lock, and notifies the next in line. */
export const release = redisScript(`${prelude}
redis.call('ZREM', KEYS[3], token)
redis.call('ZREM', KEYS[4], token)
local held = redis.call('ZREM', KEYS[1], token)
tell(ARGV[2])
return held
`);

/** KEYS: cluster. ARGV: the cluster's id. Claims the prefix for a cluster, as the registry does: one prefix belongs to one cluster. */
export const own = redisScript(`
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return redis.error_reply('FOREIGN ' .. owner) end
if not owner then redis.call('SET', KEYS[1], ARGV[1]) end
return 1
`);
