import { createHash } from "node:crypto";
import { Cluster, Redis } from "ioredis";
import { type Clock, pause, systemClock } from "../../base/clock.ts";
import { CarillonError, isCarillonError } from "../../base/errors.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import { parseRedisUrl, type RedisAddress } from "./address.ts";
import { checkServer, redisTrouble } from "./server.ts";

/** A Lua script; the server keeps it under its hash. */
export interface RedisScript {
  readonly lua: string;
  readonly sha: string;
}

export function redisScript(lua: string): RedisScript {
  return { lua, sha: createHash("sha1").update(lua).digest("hex") };
}

export interface RedisConnectionOptions {
  readonly url: string;
  /** The time limit for a request or a connection, in ms; after it, the connection is replaced. */
  readonly timeoutMs: number;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal;
  /** Called on each new connection before it counts as open. */
  readonly probe?: (connection: RedisConnection) => Promise<unknown>;
  /** True: reject if Redis cannot be reached, instead of trying again; default false. */
  readonly failFast?: boolean;
  readonly clock?: Clock;
  readonly random?: Random;
}

const firstRetryMs = 50;
const longestRetryMs = 1_000;
/**
 * A server may be reconfigured while this process is connected, so that its data is no longer reliable; its settings are checked this
 * often, in ms.
 */
const checkAgainMs = 30_000;

/** The script reads no key; in a cluster, the keys only route the request to the node that has them. */
const look = redisScript("return redis.call('INFO')");

interface Followed {
  readonly message: (text: string) => void;
  readonly following: () => void;
  /** True once the log has reported that this user may not subscribe to the channel. */
  refused?: boolean;
  /** In a cluster: cancels the timer of the next try. */
  cancel?: () => void;
}

/**
 * One connection for requests, and one for messages once a channel is followed. A request is sent at once or fails at once, and is never
 * repeated automatically, because a caller that measures trust from the request's begin must know when it was sent.
 */
export class RedisConnection {
  readonly address: RedisAddress;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #options: RedisConnectionOptions;
  readonly #requests: Redis | Cluster;
  #messages: Redis | Cluster | undefined;
  readonly #followed = new Map<string, Followed>();
  /** When the server of this connection last passed the check. */
  #checkedMono: number | undefined;
  #failures = 0;
  #lastError: unknown;
  #lost: () => void = () => undefined;
  #closed = false;

  /**
   * Waits until the server can be reached, unless `failFast`.
   * @throws COORDINATION_REFUSED, COORDINATION_UNSUPPORTED, COORDINATION_UNREACHABLE (failFast, or the signal aborted),
   *   OPTION_INVALID, and what `probe` rejects with
   */
  static async open(options: RedisConnectionOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(options);
    const { signal, failFast, log } = options;
    for (let told = false; ; ) {
      try {
        await connection.#check();
        await options.probe?.(connection);
        if (told) log(`${connection.title} can be reached now`);
        return connection;
      } catch (error) {
        if (!isCarillonError(error, "COORDINATION_UNREACHABLE") || failFast || signal?.aborted) {
          connection.close();
          throw error;
        }
        if (!told) log(`${error.message}; trying on`);
        told = true;
        await pause(connection.#clock, connection.retryMs(), signal);
      }
    }
  }

  private constructor(options: RedisConnectionOptions) {
    this.address = parseRedisUrl(options.url);
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#requests = this.#connect();
    this.#requests.on("close", () => {
      this.#checkedMono = undefined;
      this.#lost();
    });
  }

  get title(): string {
    return `the Redis at ${this.address.text}`;
  }

  /** Called when the connection for requests was lost. */
  set onLost(listener: () => void) {
    this.#lost = listener;
  }

  /** @throws COORDINATION_UNREACHABLE, COORDINATION_REFUSED, COORDINATION_FOREIGN, COORDINATION_UNSUPPORTED */
  async run(script: RedisScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const checked = this.#checkedMono;
    if (checked === undefined || this.#clock.monotonic() - checked > checkAgainMs) await this.#check();
    return this.#send(script, keys, args);
  }

  /**
   * Follows a channel: calls `message` for its messages. `following` is called when the subscription begins, and again after every
   * interruption, in which some messages are lost. A second call for a channel changes nothing.
   */
  follow(channel: string, message: (text: string) => void, following: () => void): void {
    if (this.#closed || this.#followed.has(channel)) return;
    this.#followed.set(channel, { message, following });
    const messages = this.#messages ?? this.#connectMessages();
    if (messages.status === "ready") this.#subscribe(messages, channel);
  }

  #connectMessages(): Redis | Cluster {
    // A cluster client keeps a connection of its own for messages, to any of its nodes; when that node moves, ioredis subscribes
    // again.
    const messages = this.#requests instanceof Cluster ? this.#requests : this.#connect();
    this.#messages = messages;
    messages.on("message", (channel: string, text: string) => this.#followed.get(channel)?.message(text));
    messages.on("ready", () => {
      for (const channel of this.#followed.keys()) this.#subscribe(messages, channel);
    });
    return messages;
  }

  #subscribe(client: Redis | Cluster, channel: string): void {
    const followed = this.#followed.get(channel);
    if (!followed || this.#closed) return;
    followed.cancel?.();
    client.subscribe(channel).then(followed.following, (error: unknown) => {
      const trouble = redisTrouble(error, this.address);
      // An unreachable server is reported by the callers that send requests.
      if (isCarillonError(trouble, "COORDINATION_REFUSED")) {
        if (!followed.refused) this.#options.log(trouble.message);
        followed.refused = true;
      }
      if (client instanceof Redis) return this.#renew(client);
      // In a cluster, this connection also carries requests, which need not fail because the subscription failed.
      followed.cancel = this.#clock.after(this.retryMs(), () => this.#subscribe(client, channel));
    });
  }

  /** Replaces the connection for messages, which may be dead without an error. Called when messages are missing. */
  refollow(): void {
    if (this.#messages instanceof Redis) this.#renew(this.#messages);
  }

  /** Returns the pause before the next attempt in ms: longer with every failure, up to a second, and spread at random. */
  retryMs(): number {
    const most = Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(this.#failures++, 10));
    return most * (0.5 + this.#random.next() / 2);
  }

  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#followed.values()) cancel?.();
    this.#requests.disconnect();
    this.#messages?.disconnect();
  }

  async #check(): Promise<void> {
    const where = this.address.text;
    await this.#ready();
    try {
      checkServer(String(await this.#send(look, [`{${this.address.prefix}}:state`], [])), where);
      // ioredis reports this only as an event, and would go on in database 0. The event arrives before the answer to `look`.
      if (/NOPERM.*'select'/i.test(String(this.#lastError))) throw redisTrouble(this.#lastError, this.address);
      if (/DB index|SELECT/i.test(String(this.#lastError))) {
        throw new CarillonError("COORDINATION_UNSUPPORTED", `${this.title} has no such database`, {
          hint: "Give the number of one that it has (setting `databases`), or none.",
        });
      }
    } catch (error) {
      this.#renew(this.#requests);
      // A wrong password is also reported as an event; the error that follows reports only that there was no login.
      if (/WRONGPASS|invalid password/i.test(String(this.#lastError)))
        throw redisTrouble(this.#lastError, this.address);
      throw error;
    }
    this.#failures = 0;
    this.#checkedMono = this.#clock.monotonic();
  }

  /** @throws COORDINATION_REFUSED, COORDINATION_UNREACHABLE */
  async #ready(): Promise<void> {
    const client = this.#requests;
    if (client.status === "ready") return;
    this.#lastError = undefined;
    await new Promise<void>((resolve) => {
      const done = () => {
        cancel();
        client.off("ready", done).off("error", done).off("end", done);
        this.#options.signal?.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.#clock.after(this.#options.timeoutMs, done);
      client.on("ready", done).on("error", done).on("end", done);
      this.#options.signal?.addEventListener("abort", done, { once: true });
    });
    // The status changed while this call waited.
    if ((client.status as string) === "ready") return;
    throw redisTrouble(this.#lastError ?? new Error("no connection in time"), this.address);
  }

  async #send(script: RedisScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const client = this.#requests;
    const { timeoutMs } = this.#options;
    let cancel: () => void = () => undefined;
    const late = new Promise<never>((_, reject) => {
      cancel = this.#clock.after(timeoutMs, () => {
        this.#renew(client);
        reject(new CarillonError("COORDINATION_UNREACHABLE", `${this.title} did not answer within ${timeoutMs} ms`));
      });
    });
    const answer = client.evalsha(script.sha, keys.length, ...keys, ...args).catch((error: unknown) => {
      if (!/^NOSCRIPT/.test(String((error as Error).message))) throw error;
      return client.eval(script.lua, keys.length, ...keys, ...args);
    });
    try {
      return await Promise.race([answer, late]);
    } catch (error) {
      // The master of this connection was demoted; the next connection finds the new master.
      if (/^(?:READONLY|MASTERDOWN)/.test(String((error as Error).message))) this.#renew(client);
      throw redisTrouble(error, this.address);
    } finally {
      cancel();
    }
  }

  /** Replaces a connection, except while it is connecting, because ioredis would then give up for good. */
  #renew(client: Redis | Cluster): void {
    if (client.status === "ready" || client.status === "connect") client.disconnect(true);
  }

  #connect(): Redis | Cluster {
    const { address } = this;
    const { timeoutMs } = this.#options;
    const common = {
      username: address.username,
      password: address.password,
      ...(address.tls ? { tls: {} } : {}),
      connectTimeout: timeoutMs,
      // A request that was in flight when the connection broke fails, and is not sent again.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      // The check of ioredis covers fewer reasons than `checkServer`, and prints to the console.
      enableReadyCheck: false,
      disableClientInfo: true,
    };
    const retry = () => (this.#closed ? null : this.retryMs());
    const client =
      address.kind === "cluster"
        ? new Cluster([...address.hosts], {
            redisOptions: { ...common, autoResubscribe: true },
            enableOfflineQueue: false,
            clusterRetryStrategy: retry,
            slotsRefreshTimeout: timeoutMs,
          })
        : new Redis({
            ...common,
            db: address.database,
            enableOfflineQueue: false,
            retryStrategy: retry,
            ...(address.kind === "sentinel"
              ? {
                  sentinels: [...address.hosts],
                  name: address.master,
                  sentinelPassword: address.sentinelPassword,
                  enableTLSForSentinelMode: address.tls,
                  ...(address.tls ? { sentinelTLS: {} } : {}),
                  sentinelRetryStrategy: retry,
                }
              : address.hosts[0]),
          });
    client.on("error", (error) => {
      this.#lastError = error;
    });
    client.on("end", () => {
      if (this.#closed) return;
      this.#clock.after(this.retryMs(), () => {
        if (!this.#closed && client.status === "end") client.connect().catch(() => undefined); // the listener of "error" reports it
      });
    });
    return client;
  }
}
