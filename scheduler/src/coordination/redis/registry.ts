import { randomUUID } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Shown } from "../../cluster/membership-provider.ts";
import { RedisConnection, redisScript } from "./connection.ts";

/**
 * The keys in Redis, and how ended sessions are detected without relying on Redis's clock or on the durability of its data.
 *
 *   {prefix}:cluster    the id of the cluster that owns all these keys
 *   {prefix}:service    identifies this Redis; written at the first use, and again after a wipe by a process that knows it
 *   {prefix}:state      server, epoch, clock, born, ttl, lead, version, turn, head
 *   {prefix}:members    store session → the data of its entry
 *   {prefix}:line       the queue: candidate → its turn; the lowest turn is first
 *   {prefix}:deadlines  m and a store session, or c and a candidate → the time until which the entry is valid, by `clock`
 *
 * Nothing expires by Redis's wall clock, which may step or run fast. `clock` counts milliseconds that have certainly passed: each process
 * sends the value c of `clock` in the last answer that it received, and the time e that has passed since then by its own monotonic clock;
 * the script raises `clock` to c + e if that is higher. So `clock` never advances faster than real time, whatever any wall clock does.
 *
 * `clock` can lag behind. The time that an answer takes to arrive is not counted, and an answer arrives late if the process was paused. The
 * next request of another process, whose last answer came quickly, then raises `clock` at once, and a deadline set while `clock` lagged
 * would be reached too early by the same amount. So a deadline is counted from the highest value to which a request can raise `clock`:
 * Redis's wall clock plus `lead`, which is the most by which `clock` has been ahead of that wall clock. A forward step of the wall clock
 * makes deadlines later, by at most a TTL; a backward step makes them no earlier than they would be without `lead`.
 *
 * Data that may be older than what Redis acknowledged is not trusted either: after a restart, a wipe, or the promotion of a replica. Each
 * of these begins a new epoch; it is detected by the server's run id and replication id, or by the absence of the state. Until `clock` has
 * advanced by a whole TTL within the epoch, no session counts as gone and no candidate as first; by then every live session has listed
 * itself again. The queue also begins again, and the candidate at its head is only `ahead`: in the old epoch another candidate may have
 * become first and may still believe so. Therefore the head may take a vacant term, but not depose a leader. One case cannot be detected: a
 * master that is cut off together with some of its clients continues to answer them while a replica is promoted elsewhere.
 */
const prelude = `
local cluster, channel, given, credit, nonce, patience, known =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), ARGV[7]
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= cluster then return redis.error_reply('FOREIGN ' .. owner) end

local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
local server = string.match(info, 'run_id:(%w+)') .. string.match(info, 'master_replid:(%w+)')
local state = redis.call('HMGET', KEYS[2], 'server', 'epoch', 'clock', 'born', 'ttl', 'lead')
local epoch, clock, born, ttl = state[2], tonumber(state[3] or 0), tonumber(state[4] or 0), tonumber(state[5] or 0)
local time = redis.call('TIME')
local wall = time[1] * 1000 + math.floor(time[2] / 1000)
local lead = tonumber(state[6] or -wall)
if not state[1] then redis.call('DEL', KEYS[3], KEYS[4], KEYS[5]) end -- their deadlines are by a clock that is lost
if not owner or state[1] ~= server then
  epoch, born, lead = nonce, clock, clock - wall
  redis.call('DEL', KEYS[5]) -- who is alive comes back; a dead one at its head would keep the others waiting
elseif given == epoch and credit > clock then
  clock = credit
end
if patience > ttl then ttl = patience end
if clock - wall > lead then lead = clock - wall end
local deadline = math.min(wall + lead, clock + patience) + patience
if not owner then redis.call('SET', KEYS[1], cluster) end
redis.call('SETNX', KEYS[6], known ~= '' and known or nonce)
redis.call('HSET', KEYS[2], 'server', server, 'epoch', epoch, 'clock', clock, 'born', born, 'ttl', ttl, 'lead', lead)
local doubt = born + ttl - clock
if doubt < 0 then doubt = 0 end

local events = {}
local function drop(name)
  redis.call('ZREM', KEYS[3], name)
  local id = string.sub(name, 2)
  if string.sub(name, 1, 1) == 'c' then
    redis.call('ZREM', KEYS[5], id)
  elseif redis.call('HDEL', KEYS[4], id) == 1 then
    events[#events + 1] = '-' .. id
  end
end
if doubt == 0 then
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', clock)) do drop(name) end
end
local function tell()
  local head = redis.call('ZRANGE', KEYS[5], 0, 0)[1] or ''
  if head ~= (redis.call('HGET', KEYS[2], 'head') or '') then
    redis.call('HSET', KEYS[2], 'head', head)
    if head ~= '' then redis.call('PUBLISH', channel .. ':first', head) end
  end
  if #events == 0 then return end
  local version = redis.call('HINCRBY', KEYS[2], 'version', 1)
  redis.call('PUBLISH', channel, version .. '\\n' .. table.concat(events, '\\n'))
end
`;

/** Renews this process's entries. ARGV from 8: session or '', its data, candidate or '', then the entries to delete. */
const renew = redisScript(`${prelude}
local session, shown, contender = ARGV[8], ARGV[9], ARGV[10]
for i = 11, #ARGV do drop(ARGV[i]) end
if session ~= '' then
  if redis.call('HGET', KEYS[4], session) ~= shown and redis.call('HSET', KEYS[4], session, shown) == 1 then
    events[#events + 1] = '+' .. session
  end
  redis.call('ZADD', KEYS[3], deadline, 'm' .. session)
end
if contender ~= '' then
  if not redis.call('ZSCORE', KEYS[5], contender) then
    redis.call('ZADD', KEYS[5], redis.call('HINCRBY', KEYS[2], 'turn', 1), contender)
  end
  redis.call('ZADD', KEYS[3], deadline, 'c' .. contender)
end
tell()
local place, vacant = 0, -1
local line = redis.call('ZRANGE', KEYS[5], 0, 1)
if contender ~= '' and line[1] == contender then
  place = doubt == 0 and 1 or 2
elseif contender ~= '' and line[2] == contender then
  vacant = tonumber(redis.call('ZSCORE', KEYS[3], 'c' .. line[1]) or clock) - clock
end
return {epoch, clock, doubt, tonumber(redis.call('HGET', KEYS[2], 'version') or 0), place, vacant}
`);

/** Returns which of the sessions are not listed. ARGV from 8: sessions. */
const gone = redisScript(`${prelude}
tell()
local answer = {epoch, clock, doubt}
for i = 8, #ARGV do
  if not redis.call('ZSCORE', KEYS[3], 'm' .. ARGV[i]) then answer[#answer + 1] = ARGV[i] end
end
return answer
`);

const service = redisScript(`${prelude}
tell()
return {epoch, clock, doubt, redis.call('GET', KEYS[6])}
`);

/** Returns the numbers of all listed sessions; the data of one session is read by `described`. */
const members = redisScript(`${prelude}
tell()
local version = tonumber(redis.call('HGET', KEYS[2], 'version') or 0)
return {epoch, clock, doubt, version, redis.call('HKEYS', KEYS[4])}
`);

/** Returns the data of one session. ARGV from 8: the session. */
const described = redisScript(`${prelude}
tell()
return {epoch, clock, doubt, redis.call('HGET', KEYS[4], ARGV[8])}
`);

const look = redisScript("return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])}");

/**
 * Reads which cluster uses this Redis, without joining that cluster.
 * @returns undefined if no cluster uses it
 * @throws OPTION_INVALID, COORDINATION_UNREACHABLE, COORDINATION_REFUSED, COORDINATION_UNSUPPORTED; COORDINATION_FOREIGN if the
 * keys hold other data
 */
export async function lookAtRedis(url: string): Promise<{ clusterId: string; serviceId: string } | undefined> {
  const connection = await RedisConnection.open({ url, timeoutMs: 5_000, log: () => undefined, failFast: true });
  try {
    return await readOwner(connection);
  } finally {
    connection.close();
  }
}

async function readOwner(connection: RedisConnection): Promise<{ clusterId: string; serviceId: string } | undefined> {
  const { prefix } = connection.address;
  const keys = [`{${prefix}}:cluster`, `{${prefix}}:service`];
  const [clusterId, serviceId] = (await connection.run(look, keys, [])) as [string | null, string | null];
  return clusterId === null ? undefined : { clusterId, serviceId: serviceId ?? "" };
}

export interface Renewal {
  readonly shown: Shown | undefined;
  readonly contender: string | undefined;
  /** Entries of this process from earlier renewals, which are to be deleted. */
  readonly dropped: readonly string[];
}

export interface Renewed {
  /** A random id that changes when the service may have lost data. */
  readonly epoch: string;
  /** For how long the service will still report no session as gone and no candidate as first, in ms. */
  readonly doubtMs: number;
  /** The number of the last message; each message's number is one higher than that of the message before. */
  readonly version: number;
  /**
   * The place in the queue. `ahead`: first in a queue that was lost and started anew; another candidate may still believe that it is first.
   */
  readonly place: "behind" | "first" | "ahead";
  /** For the second in the queue: the time in ms until the first one's entry expires, unless it is renewed. */
  readonly vacantInMs: number | undefined;
}

export const droppedSession = (sessionId: number) => `m${sessionId}`;
export const droppedContender = (contender: string) => `c${contender}`;

export class RedisRegistry {
  /** The channel of the numbered messages about sessions that appear in the list or disappear. */
  readonly channel: string;
  /** The channel with a message for each candidate that becomes first. */
  readonly firstChannel: string;
  readonly #connection: RedisConnection;
  readonly #clock: Clock;
  readonly #clusterId: string;
  readonly #ttlMs: number;
  readonly #keys: readonly string[];
  #serviceId = "";
  /** The value of `clock` in the newest answer, and when that answer arrived by this machine's monotonic clock. */
  #heard: { epoch: string; clockMs: number; atMono: number } | undefined;

  constructor(connection: RedisConnection, clock: Clock, clusterId: string, ttlMs: number) {
    const { prefix, database } = connection.address;
    this.#connection = connection;
    this.#clock = clock;
    this.#clusterId = clusterId;
    this.#ttlMs = ttlMs;
    this.#keys = ["cluster", "state", "deadlines", "members", "line", "service"].map((name) => `{${prefix}}:${name}`);
    // Channels are common to all databases of a server, so the channel's name contains the database.
    this.channel = `{${prefix}}:changes:${database}`;
    this.firstChannel = `${this.channel}:first`;
  }

  /** The service's id; "" until `knowService` has resolved. */
  get serviceId(): string {
    return this.#serviceId;
  }

  async renew({ shown, contender, dropped }: Renewal): Promise<Renewed> {
    const session = shown ? [shown.sessionId, JSON.stringify(shown)] : ["", ""];
    const answer = await this.#ask(renew, [...session, contender ?? "", ...dropped]);
    const [epoch, , doubtMs, version, at, vacantInMs] = answer as [string, number, number, number, number, number];
    const place = (["behind", "first", "ahead"] as const)[at] ?? "behind";
    return { epoch, doubtMs, version, place, vacantInMs: vacantInMs < 0 ? undefined : vacantInMs };
  }

  /**
   * Returns the sessions that are not listed. @throws as `RedisConnection.run`; COORDINATION_UNREACHABLE while sessions may be
   * lost
   */
  async gone(sessionIds: readonly number[]): Promise<number[]> {
    const [, , doubtMs, ...ids] = (await this.#ask(gone, sessionIds)) as [string, number, number, ...string[]];
    if (doubtMs > 0) {
      throw new CarillonError(
        "COORDINATION_UNREACHABLE",
        `${this.#connection.title} began anew and cannot tell for another ${doubtMs} ms who is gone`,
        { hint: "It was restarted, wiped or replaced. Those who are alive show themselves again meanwhile." },
      );
    }
    return ids.map(Number);
  }

  /**
   * Reads the service's id, or creates it.
   * @param nameNew returns the id for a Redis that holds no cluster's data; default: a random id
   * @throws the errors of `nameNew` and of `RedisConnection.run`
   */
  async knowService(nameNew: () => Promise<string> = async () => ""): Promise<void> {
    if (this.#serviceId === "" && !(await readOwner(this.#connection))) this.#serviceId = await nameNew();
    const [, , , id] = (await this.#ask(service, [])) as [string, number, number, string];
    this.#serviceId = id;
  }

  async members(): Promise<{ version: number; shown: readonly number[] }> {
    const answer = (await this.#ask(members, [])) as [string, number, number, number, string[]];
    return { version: answer[3], shown: answer[4].map(Number) };
  }

  async described(sessionId: number): Promise<string | undefined> {
    const answer = (await this.#ask(described, [sessionId])) as [string, number, number, string | null];
    return answer[3] ?? undefined;
  }

  async #ask(script: ReturnType<typeof redisScript>, args: readonly (string | number)[]): Promise<unknown[]> {
    const heard = this.#heard;
    // Rounded down, because the service's `clock` may lag behind real time but must not be ahead of it.
    const credit = heard ? Math.floor(heard.clockMs + this.#clock.monotonic() - heard.atMono) : 0;
    const common = [
      this.#clusterId,
      this.channel,
      heard?.epoch ?? "",
      credit,
      randomUUID(),
      this.#ttlMs,
      this.#serviceId,
    ];
    const answer = (await this.#connection.run(script, this.#keys, [...common, ...args])) as unknown[];
    this.#heard = { epoch: answer[0] as string, clockMs: answer[1] as number, atMono: this.#clock.monotonic() };
    return answer;
  }
}
