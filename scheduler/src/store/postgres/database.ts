import { setMaxListeners } from "node:events";
import type pg from "pg";
import type { SqlClient } from "../../base/change.ts";
import { type Clock, pause, settlesWithin } from "../../base/clock.ts";
import { CarillonError, isCarillonError, isStoreAway, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { types } from "./columns.ts";
import { Connections, type Driver, type Heard, pgDriver, sessionSettings } from "./connections.ts";
import { isPooled, keepsConnection, nameOnlyWhile, type Pooling, uncompiled, uncompiledSql } from "./pooler.ts";
import { Memory } from "./recovery/memory.ts";
import { comesBefore, type Recovering, type StandingRow, standingSql } from "./recovery/standing.ts";
import { isTransient, storeError } from "./store-errors.ts";
import { type Way, wayTo } from "./way.ts";

export type { Driver } from "./connections.ts";

export interface DatabaseOptions {
  /** postgres:// URL, with several hosts or one; pg's environment variables fill what it leaves out. */
  url: string;
  /** Where LISTEN works, if `url` leads to a pooler in transaction mode; default `url`. */
  listenUrl?: string | undefined;
  schema: string;
  clock: Clock;
  random: Random;
  log: Log;
  /** Connections at most, the listener's not counted. */
  connectionsMax: number;
  /** How long to wait for a connection, and `ask` for an answer; default 5 s. */
  answerMs?: number;
  /** Called while the server cannot be reached, to bring an embedded one back. */
  revive?: () => Promise<void>;
  /** What speaks to the server; default pg. */
  driver?: Driver;
}

const defaultAnswerMs = 5_000;
/** Left to the system it would be two hours. */
const keepAliveAfterMs = 10_000;
/** Of a client that is no more the server ends the transaction after this long, and its locks with it. */
const transactionIdle = "10s";
/** How long the server, or the way to it, may take to accept a request to cancel. */
const cancelMs = 250;
/** Where the request to cancel was lost. */
const cancelAgainMs = 1_000;
const firstPauseMs = 50;
const longestPauseMs = 2_000;
/** Where another host may have been promoted meanwhile. */
const longestPauseAmongHostsMs = 400;

/**
 * One PostgreSQL and the manners for talking to it: errors become Carillon's, and `persist` repeats what may be
 * repeated until the store answers, with back-off, telling of the outage once and of its end once.
 */
export class Database {
  readonly schema: string;
  readonly clock: Clock;
  /** What was acknowledged here, which a standby may lack that is promoted. */
  readonly memory = new Memory();
  readonly #options: DatabaseOptions;
  #recovery: Recovering | undefined;
  /** Of all that were connected to, the one that counts. */
  #server: { timeline: string; system: string | null } | undefined;
  readonly #driver: Driver;
  readonly #answerMs: number;
  readonly #pool: pg.Pool;
  readonly #connections = new Connections((client) => this.#cancel(client));
  readonly #way: Way;
  readonly #listenWay: Way;
  readonly #closing = new AbortController();
  #pooling: Pooling = "none";
  #compiles = false;
  #downSince: number | null = null;
  #ended: Promise<void> | undefined;
  #cancelLook = (): void => undefined;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#driver = options.driver ?? pgDriver;
    this.#answerMs = options.answerMs ?? defaultAnswerMs;
    this.clock = options.clock;
    this.schema = quoteIdentifier(options.schema);
    this.#way = wayTo(options.url, options.clock, options.log);
    this.#listenWay =
      options.listenUrl === undefined ? this.#way : wayTo(options.listenUrl, options.clock, options.log);
    const { url, Routed } = this.#way;
    // As many wait for the store's return as there is work; Node would take more than ten for a leak.
    setMaxListeners(0, this.#closing.signal);
    this.#pool = this.#driver.pool({
      connectionString: url,
      ...(Routed && { Client: Routed }),
      max: options.connectionsMax,
      types,
      connectionTimeoutMillis: this.#answerMs,
      idleTimeoutMillis: 30_000,
      allowExitOnIdle: true,
      application_name: "carillon",
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveAfterMs,
      onConnect: (client) => this.#settle(client),
    });
    this.#pool.on("connect", (client) => {
      // One that the server ends in the same breath as it lets it in breaks before whoever waits for it has it, and
      // hears this event; unheard, it would end the process. The next query on it tells.
      client.on("error", (error) => options.log.debug({ error: messageOf(error) }, "a store connection was lost"));
    });
    // An idle connection that breaks is replaced by the pool; the next query tells whether the store is away.
    this.#pool.on("error", (error) => options.log.debug({ error: messageOf(error) }, "idle store connection lost"));
  }

  get log(): Log {
    return this.#options.log;
  }

  /** Aborted when this process closes its store. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** undefined: of a tool that takes no part in the cluster's work. */
  get recovery(): Recovering | undefined {
    return this.#recovery;
  }

  /** Known once there was a connection. */
  get pooling(): Pooling {
    return this.#pooling;
  }

  /** Signals are to be heard elsewhere than where statements go. */
  get listensElsewhere(): boolean {
    return this.#listenWay !== this.#way;
  }

  /** From now on what the store refuses because it may lack something waits for its recovery, and is asked again. */
  recoverBy(recovery: Recovering): void {
    this.#recovery = recovery;
  }

  /** Before its first use. The pool gives up on whom it connects to, not on who is silent from then on. */
  async #settle(client: pg.ClientBase): Promise<void> {
    this.#connections.watch(client);
    await this.#inTime(client, async () => {
      const seen = await isPooled(client);
      if (seen) {
        this.#compiles = seen.compiles;
        if (this.#pooling === "none") this.#pooling = "transaction";
        nameOnlyWhile(() => this.#pooling === "session", client);
      } else await client.query(sessionSettings);
      // It may lead to another server than the one before.
      if (!this.#recovery) return;
      const { rows } = await client.query(`select ${standingSql(this.schema)}`);
      this.told(rows[0] as StandingRow, client);
    });
  }

  /**
   * Finds out which mode the pooler between this client and the server is in.
   * @param client one of `connect` or `connectListener`, without other work
   */
  async poolingOf(client: pg.Client): Promise<Pooling> {
    if (!(await isPooled(client))) return "none";
    const notify = (channel: string) => this.query("", "select pg_notify($1, '')", [channel]);
    return (await keepsConnection(client, notify, this.clock)) ? "session" : "transaction";
  }

  /** The pooler that statements go through was proven to be in session mode: from now on they are prepared by name. */
  inSessionMode(): void {
    if (this.#pooling === "transaction") this.#pooling = "session";
  }

  /**
   * What the store says of itself: which server it is, whether it is whole, and whether a standby may lack what it acknowledges.
   * @param client over which it was told, where that is known
   * @throws STORE_UNREACHABLE when another server has taken this one's place
   */
  told({ whole, recovery, standby, ...server }: StandingRow, client?: pg.ClientBase): void {
    this.#follow(server, client);
    this.memory.standbys(standby);
    this.#recovery?.found(whole, recovery);
  }

  /**
   * Two servers may answer at once: a former primary that stood still goes on where it stopped, and whoever is connected to it would work
   * on there. The one of the higher timeline counts, and connections to the other are cut.
   */
  #follow({ timeline, system }: Pick<StandingRow, "timeline" | "system">, client?: pg.ClientBase): void {
    const known = this.#server;
    if (timeline === null || (timeline === known?.timeline && system === known.system)) return;
    const isFormer = known !== undefined && system === known.system && comesBefore(timeline, known.timeline);
    if (!isFormer) this.#server = { timeline, system };
    if (known !== undefined) this.#connections.cutAll(isFormer ? undefined : client);
    if (!isFormer) return;
    this.#way.hosts?.doubt();
    throw new CarillonError("STORE_UNREACHABLE", "this server was the primary, and another has taken its place since", {
      hint: "Name all servers in the URL, so that the present primary is found; or have the name in it lead there.",
    });
  }

  /** A connection of its own, outside the pool. The caller ends it. */
  connect(): Promise<pg.Client> {
    return this.#connect(this.#way, "carillon");
  }

  /** The same for LISTEN. */
  connectListener(): Promise<pg.Client> {
    return this.#connect(this.#listenWay, "carillon listener");
  }

  async #connect({ url, hosts, Routed }: Way, name: string): Promise<pg.Client> {
    const config = {
      connectionString: url,
      types,
      connectionTimeoutMillis: this.#answerMs,
      application_name: name,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveAfterMs,
    };
    const client = Routed ? new Routed(config) : this.#driver.client(config);
    // Its query rejects when it breaks; unheard, this event would end the process.
    client.on("error", (error) => this.#options.log.debug({ error: messageOf(error) }, "a store connection was lost"));
    try {
      await client.connect();
    } catch (error) {
      throw this.#failed(error, hosts);
    }
    this.#connections.watch(client);
    return client;
  }

  /** One try. `name` makes it a prepared statement of each connection. */
  query<Row = Record<string, unknown>>(name: string, text: string, values: unknown[] = []): Promise<Row[]> {
    return this.#recovered(() =>
      this.#hold(async (client) => {
        const { rows } = await this.#one(client, { name, text, values });
        return rows as Row[];
      }),
    );
  }

  #one(client: pg.ClientBase, query: pg.QueryConfig): Promise<pg.QueryResult> {
    return this.#compiles ? uncompiled(client, () => client.query(query)) : client.query(query);
  }

  /**
   * A statement without values that PostgreSQL refuses in a transaction, on a connection of its own. Cancelled at the server after
   * `mostMs`: then it rejects with SQL state 57014.
   */
  async limited(text: string, mostMs: number): Promise<void> {
    const client = await this.connect();
    let stop: () => void = () => undefined;
    const cancelAfter = (ms: number) => {
      stop = this.clock.after(ms, () => {
        void this.#cancel(client);
        cancelAfter(cancelAgainMs);
      });
    };
    cancelAfter(mostMs);
    try {
      await client.query(text);
    } catch (error) {
      throw this.#failed(error);
    } finally {
      stop();
      await client.end();
    }
  }

  /** In a caller's own transaction where there is one, else in one of its own. */
  within<T>(client: SqlClient | undefined, work: (client: SqlClient) => Promise<T>): Promise<T> {
    return client ? work(client).catch((error) => this.refused(error)) : this.transaction(work);
  }

  /** A statement in a caller's own transaction failed, which only the caller can begin anew. @throws the error for them */
  refused(error: unknown): never {
    const failure = this.#failed(error);
    if (isCarillonError(failure, "STORE_RECOVERING")) this.#recovery?.found(false, null);
    throw failure;
  }

  /** What the store refused because it may lack something has changed nothing: it is asked again after the recovery. */
  async #recovered<T>(asked: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await asked();
      } catch (error) {
        if (!this.#recovery || !isCarillonError(error, "STORE_RECOVERING")) throw error;
        await this.#recovery.join();
      }
    }
  }

  /** The error for the caller. A server that is gone, or refuses a write, may have a successor: connections look for it. */
  #failed(error: unknown, hosts = this.#way.hosts): unknown {
    const failure = storeError(error);
    if (isCarillonError(failure, "STORE_UNREACHABLE")) hosts?.doubt();
    if (isCarillonError(failure, "STORE_READ_ONLY")) {
      hosts?.doubt();
      this.#connections.cutAll();
    }
    return failure;
  }

  /**
   * One try of a statement that is always answered at once. No answer in time means that the server, or the way to it,
   * is silent: then the connections that have been silent for as long are cut, so that whatever waits on them tries
   * anew, and does not hold the pool until the system gives them up.
   */
  async ask<Row = Record<string, unknown>>(name: string, text: string, values: unknown[] = []): Promise<Row[]> {
    return this.#recovered(() => {
      const heard = this.#connections.mark();
      return this.#hold(
        async (client) => {
          const asked = () => this.#one(client, { name, text, values });
          const { rows } = await this.#inTime(client, asked, () => this.#silent(heard));
          return rows as Row[];
        },
        (error) => {
          if (/timeout/.test(messageOf(error))) this.#silent(heard);
        },
      );
    });
  }

  /** Cancels what the client waits for; resolves within a quarter of a second, whether or not the server takes it. */
  async #cancel(client: pg.ClientBase): Promise<void> {
    const request = this.#driver.cancel?.(client);
    if (!request) return;
    let stop: () => void = () => undefined;
    const late = new Promise<void>((resolve) => {
      stop = this.clock.after(cancelMs, resolve);
    });
    await Promise.race([request.taken, late]);
    stop();
    request.drop();
  }

  /** Gives the connection up when nothing is answered in time. */
  async #inTime<T>(client: pg.ClientBase, asked: () => Promise<T>, onSilent: () => void = () => undefined): Promise<T> {
    const answerMs = this.#answerMs;
    let silent = false;
    let answered = false;
    const cancel = this.clock.after(answerMs, () => {
      // A process that was stopped finds its timers due before it reads what came meanwhile: it reads first.
      this.clock.after(0, () => {
        if (answered) return;
        silent = true;
        this.#connections.giveUp(client);
        onSilent();
      });
    });
    try {
      return await asked();
    } catch (error) {
      throw silent ? new Error(`timeout expired: no answer within ${answerMs} ms`, { cause: error }) : error;
    } finally {
      answered = true;
      cancel();
    }
  }

  /**
   * Runs `work` in one transaction on one connection; one try, but for one that the store refuses while it recovers. It stands
   * idle for 10 s at most: a machine that vanishes between two statements would else keep its locks until the system gives the
   * connection up, two hours later.
   */
  transaction<T>(work: (client: SqlClient) => Promise<T>): Promise<T> {
    return this.#recovered(() => this.#transaction("", work));
  }

  /**
   * The same for what recovers the store, which must write while it refuses others; repeated until it answers. Heartbeats wait for it, so
   * it has to notice by itself that a connection leads to a server which is silent, as a former primary that stands still is.
   */
  recovering<T>(work: (client: SqlClient) => Promise<T>): Promise<T> {
    return this.persist(() => {
      const heard = this.#connections.mark();
      return this.#transaction("; set local carillon.recovery = on", work, (client, begin) =>
        this.#inTime(client, begin, () => this.#silent(heard)),
      );
    });
  }

  #transaction<T>(
    settings: string,
    work: (client: SqlClient) => Promise<T>,
    watch: (client: pg.ClientBase, begin: () => Promise<unknown>) => Promise<unknown> = (_client, begin) => begin(),
  ): Promise<T> {
    return this.#hold(async (client, spoil) => {
      try {
        const text = `begin isolation level read committed; set local idle_in_transaction_session_timeout = '${transactionIdle}'${this.#compiles ? uncompiledSql : ""}${settings}`;
        await watch(client, () => client.query(text));
        const result = await work(client as SqlClient);
        await client.query("commit");
        return result;
      } catch (error) {
        await client.query("rollback").catch(spoil);
        throw error;
      }
    });
  }

  /** A connection of the pool for as long as `work` takes. One that breaks, or is spoiled, does not go back. */
  async #hold<T>(
    work: (client: pg.PoolClient, spoil: (error: Error) => void) => Promise<T>,
    onRefused: (error: unknown) => void = () => undefined,
  ): Promise<T> {
    let client: pg.PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      onRefused(error);
      throw this.#failed(error);
    }
    let broken: Error | undefined;
    const spoil = (error: Error) => {
      broken = error;
    };
    // A connection that breaks tells its query, and tells this event too, which would end the process unheard.
    client.on("error", spoil);
    try {
      return await work(client, spoil);
    } catch (error) {
      throw this.#failed(error);
    } finally {
      client.off("error", spoil);
      client.release(broken ?? this.#connections.isGivenUp(client));
    }
  }

  /**
   * Repeats `work` while the store is away or asks for another try. Only for work that may be repeated.
   * @param signal ends the repeating; the last error is thrown
   */
  async persist<T>(work: (again: boolean) => Promise<T>, signal?: AbortSignal): Promise<T> {
    let wait = firstPauseMs;
    for (let again = false; ; again = true) {
      try {
        const result = await work(again);
        this.#up();
        return result;
      } catch (error) {
        if (!isTransient(error) || signal?.aborted || this.#closing.signal.aborted) throw error;
        if (isStoreAway(error)) await this.#away(error);
        await pause(this.clock, wait * (0.5 + this.#options.random.next() / 2), signal ?? this.#closing.signal);
        wait = Math.min(wait * 2, this.#way.hosts ? longestPauseAmongHostsMs : longestPauseMs);
      }
    }
  }

  /** Nothing is repeated any more. @param withinMs for statements under way; then their connections are cut */
  async close(withinMs = this.#answerMs): Promise<void> {
    this.#closing.abort();
    this.#cancelLook();
    this.#ended ??= this.#pool.end();
    if (!(await settlesWithin(this.clock, withinMs, this.#ended))) this.abandon();
    else await this.#ended;
  }

  /** Whatever waits for the store is told at once that it cannot be reached. */
  abandon(): void {
    this.#closing.abort();
    this.#cancelLook();
    this.#connections.destroyAll();
  }

  async #away(error: unknown): Promise<void> {
    if (this.#downSince === null) {
      this.#downSince = this.clock.monotonic();
      const { code, hint } = error as CarillonError;
      this.log.error({ code, hint, error: messageOf(error) }, "the store is away; trying again until it is back");
    }
    try {
      await this.#options.revive?.();
    } catch (failure) {
      this.log.debug({ error: messageOf(failure) }, "the embedded store did not come back yet");
    }
  }

  /** Looks once more: one that was heard meanwhile may have been swallowed after that. */
  #silent(heard: Heard): void {
    this.#connections.cut(heard);
    const later = this.#connections.mark();
    this.#cancelLook();
    this.#cancelLook = this.clock.after(this.#answerMs, () => this.#connections.cut(later));
  }

  #up(): void {
    if (this.#downSince === null) return;
    const awayMs = Math.round(this.clock.monotonic() - this.#downSince);
    this.#downSince = null;
    this.log.info({ awayMs }, "the store is back");
  }
}

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
