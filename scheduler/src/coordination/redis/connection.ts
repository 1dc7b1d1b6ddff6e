import { createHash } from "node:crypto";
import { Cluster, Redis } from "ioredis";
import { type Clock, pause, systemClock } from "../../base/clock.ts";
import { CarillonError, isCarillonError } from "../../base/errors.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import { parseRedisUrl, type RedisAddress } from "./address.ts";
import { checkServer, redisTrouble } from "./server.ts";

/** A Lua script and its SHA-1 hash, by which the server caches the script. */
export interface RedisScript {
  readonly lua: string;
  readonly sha: string;
}

export function redisScript(lua: string): RedisScript {
  return { lua, sha: createHash("sha1").update(lua).digest("hex") };
}

export interface RedisConnectionOptions {
  readonly url: string;
  /** The time limit in ms for a request or for connecting; the connection is replaced when it is exceeded. */
  readonly timeoutMs: number;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal;
  /**
   * Called by `open` once the server has been checked, at each attempt to open; `open` retries or rejects after its error as
   * after an error of the connection.
   */
  readonly probe?: (connection: RedisConnection) => Promise<unknown>;
  /** True: `open` rejects if Redis is unreachable, instead of retrying; default false. */
  readonly failFast?: boolean;
  readonly clock?: Clock;
  readonly random?: Random;
}

const firstRetryMs = 50;
const longestRetryMs = 1_000;
/**
 * A request checks the server's settings again if the last check was more than this many ms ago: a server may be reconfigured while this
 * process is connected, so that its data is no longer reliable.
 */
const checkAgainMs = 30_000;

/** Returns INFO. It reads no key; keys are passed only so that a cluster routes the request to the node that holds them. */
const look = redisScript("return redis.call('INFO')");

interface Followed {
  readonly message: (text: string) => void;
  readonly following: () => void;
  /** True once it has been logged that this user may not subscribe to the channel. */
  refused?: boolean;
  /** Cancels the timer of the next attempt to subscribe; used in a cluster. */
  cancel?: () => void;
}

/**
 * One connection for requests, and another for messages once a channel is subscribed to. A request is not repeated after its
 * connection broke: callers count the time for which a lock is certain from the moment when they called `run`.
 */
export class RedisConnection {
  readonly address: RedisAddress;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #options: RedisConnectionOptions;
  readonly #requests: Redis | Cluster;
  #messages: Redis | Cluster | undefined;
  readonly #followed = new Map<string, Followed>();
  /** When the settings of this connection's server were last checked, by the monotonic clock. */
  #checkedMono: number | undefined;
  #failures = 0;
  #lastError: unknown;
  #lost: () => void = () => undefined;
  #closed = false;

  /**
   * Connects; waits until the server can be reached, unless `failFast`.
   * @throws COORDINATION_REFUSED, COORDINATION_UNSUPPORTED, OPTION_INVALID, COORDINATION_UNREACHABLE (with `failFast`, or if the signal
   * aborted), and other errors of `probe`
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

  /** Sets the listener that is called when the connection for requests is lost. */
  set onLost(listener: () => void) {
    this.#lost = listener;
  }

  /** Runs a script. @throws COORDINATION_UNREACHABLE, COORDINATION_REFUSED, COORDINATION_FOREIGN, COORDINATION_UNSUPPORTED */
  async run(script: RedisScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const checked = this.#checkedMono;
    if (checked === undefined || this.#clock.monotonic() - checked > checkAgainMs) await this.#check();
    return this.#send(script, keys, args);
  }

  /**
   * Subscribes to a channel. Calls `message` for each message, and `following` whenever this client has subscribed: at first,
   * and after each reconnection, before which messages may have been lost. A second call for the same channel has no effect.
   */
  follow(channel: string, message: (text: string) => void, following: () => void): void {
    if (this.#closed || this.#followed.has(channel)) return;
    this.#followed.set(channel, { message, following });
    const messages = this.#messages ?? this.#connectMessages();
    if (messages.status === "ready") this.#subscribe(messages, channel);
  }

  #connectMessages(): Redis | Cluster {
    // In a cluster, ioredis itself keeps a separate connection for messages, and subscribes again when the connected node changes.
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
      // An unreachable server is not logged here, because the callers that send requests report it.
      if (isCarillonError(trouble, "COORDINATION_REFUSED")) {
        if (!followed.refused) this.#options.log(trouble.message);
        followed.refused = true;
      }
      if (client instanceof Redis) return this.#renew(client);
      // In a cluster only the subscription is retried, because the same client also serves requests, which may still succeed.
      followed.cancel = this.#clock.after(this.retryMs(), () => this.#subscribe(client, channel));
    });
  }

  /**
   * Replaces the connection for messages, which may be broken without an error; does nothing in a cluster. Called when expected messages
   * have not arrived.
   */
  refollow(): void {
    if (this.#messages instanceof Redis) this.#renew(this.#messages);
  }

  /** Returns the pause before the next attempt in ms: random, and longer with each failure, up to a second. */
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
      // ioredis reports a failed SELECT only as an event and would then use database 0. The event arrives before the answer to `look`.
      if (/NOPERM.*'select'/i.test(String(this.#lastError))) throw redisTrouble(this.#lastError, this.address);
      if (/DB index|SELECT/i.test(String(this.#lastError))) {
        throw new CarillonError("COORDINATION_UNSUPPORTED", `${this.title} has no such database`, {
          hint: "Give the number of one that it has (setting `databases`), or none.",
        });
      }
    } catch (error) {
      this.#renew(this.#requests);
      // ioredis also reports a wrong password as an event; the error of the request only says that the client is not authenticated.
      if (/WRONGPASS|invalid password/i.test(String(this.#lastError)))
        throw redisTrouble(this.#lastError, this.address);
      throw error;
    }
    this.#failures = 0;
    this.#checkedMono = this.#clock.monotonic();
  }

  /** Waits until the connection for requests is open. @throws COORDINATION_REFUSED, COORDINATION_UNREACHABLE */
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
    // The status may have changed during the wait.
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
      // The server has become a replica, or has lost its master; through sentinels, the next connection finds the new master.
      if (/^(?:READONLY|MASTERDOWN)/.test(String((error as Error).message))) this.#renew(client);
      throw redisTrouble(error, this.address);
    } finally {
      cancel();
    }
  }

  /** Replaces a connection, unless the client is still connecting: ioredis would then stop reconnecting for good. */
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
      // A request in progress fails when the connection breaks, and is not sent again.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      // The ready check of ioredis covers fewer cases than `checkServer`, and prints to the console.
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
        if (!this.#closed && client.status === "end") client.connect().catch(() => undefined); // the "error" listener reports it
      });
    });
    return client;
  }
}
