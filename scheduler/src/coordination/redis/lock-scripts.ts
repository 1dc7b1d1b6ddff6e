import { redisScript } from "./connection.ts";

/**
 * The keys of one lock name in Redis:
 *
 *   (the name)   token → the time until which it holds, by Redis's clock
 *   …:fence      hash: server, value and question (see `fencing`); permits: how many tokens may hold; turn: the last turn that was assigned
 *   …:queue      token → turn, for clients that wait in order
 *   …:deadlines  token → the time until which it waits, by Redis's clock; a step of that clock can at most cost a client its turn
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
 * A fence is base × 2^32 + count; the base comes from the store, the count from this Redis. For each lock name, a Redis
 * requests a new base if its data may be older than what it has acknowledged (its run id or replication id has changed), has
 * been lost, or belongs to another era. It accepts a base only with the question that it currently stores: a base that was
 * fetched before another loss could be lower than fences issued since. Values are strings, because Lua's numbers are exact only
 * up to 2^53.
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
 * Takes a permit. KEYS: see above. ARGV: token, ttl, base, question, asked, era, permits, '1' to wait in order, channel.
 *
 * If the token already holds a permit, an earlier request succeeded and its answer was lost: the client gets a new fence, which is safe
 * because no client has seen the first one. If the server has lost data, it drops that token instead, because another client may hold the
 * permit too, and a new permit must be taken. A client that waits in order and stops sending requests loses its turn.
 * @returns {1, fence}, {0, ms until a permit may become free, or -1}, {2, question} or {3, the number of permits in use}
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

/** Renews a permit. KEYS: see above. ARGV: token, ttl. An expired token is not renewed, even if Redis still stores it. */
export const renew = redisScript(`${prelude}
local ttl = tonumber(ARGV[2])
if tonumber(redis.call('ZSCORE', KEYS[1], token) or 0) <= now then return 0 end
redis.call('ZADD', KEYS[1], now + ttl, token)
if redis.call('PTTL', KEYS[1]) < ttl then redis.call('PEXPIRE', KEYS[1], ttl) end
return 1
`);

/** Leaves the queue or releases a permit, and notifies the next client in the queue. KEYS: see above. ARGV: token, channel. */
export const release = redisScript(`${prelude}
redis.call('ZREM', KEYS[3], token)
redis.call('ZREM', KEYS[4], token)
local held = redis.call('ZREM', KEYS[1], token)
tell(ARGV[2])
return held
`);

/** Claims the prefix for a cluster, as the registry does; a prefix belongs to one cluster. KEYS: cluster. ARGV: the cluster's id. */
export const own = redisScript(`
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return redis.error_reply('FOREIGN ' .. owner) end
if not owner then redis.call('SET', KEYS[1], ARGV[1]) end
return 1
`);
