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
  /** A postgres:// URL with one or several hosts; pg's environment variables replace parts that it omits. */
  url: string;
  /** The URL for LISTEN, if `url` leads to a pooler in transaction mode; default `url`. */
  listenUrl?: string | undefined;
  schema: string;
  clock: Clock;
  random: Random;
  log: Log;
  /** The most connections, not counting the listener's. */
  connectionsMax: number;
  /** How long to wait for a connection, and for the answer to `ask`, in ms; default 5 s. */
  answerMs?: number;
  /** Called while the server cannot be reached, to restart an embedded one. */
  revive?: () => Promise<void>;
  /** Creates the connections; default pg. */
  driver?: Driver;
}

const defaultAnswerMs = 5_000;
/** The operating system's default for the first keep-alive probe is two hours. */
const keepAliveAfterMs = 10_000;
/** The server ends the transaction of a vanished client after this time, and releases its locks. */
const transactionIdle = "10s";
/** The time limit for delivering a cancel request to the server. */
const cancelMs = 250;
/** Delay before the cancel request is sent again, in case it was lost. */
const cancelAgainMs = 1_000;
const firstPauseMs = 50;
const longestPauseMs = 2_000;
/** The longest pause with several hosts, since another one may have been promoted meanwhile. */
const longestPauseAmongHostsMs = 400;

/**
 * A connection to one PostgreSQL database and the rules for using it: errors become CarillonErrors, and `persist` repeats repeatable work
 * until the store answers, with back-off, logging each outage's beginning and end once.
 */
export class Database {
  readonly schema: string;
  readonly clock: Clock;
  /** Writes acknowledged to this process that a promoted standby may lack. */
  readonly memory = new Memory();
  readonly #options: DatabaseOptions;
  #recovery: Recovering | undefined;
  /** The server that is valid, of all servers to which this process was connected. */
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
    // Any number of operations may wait for the store's return; with more than ten listeners Node would warn of a leak.
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
      // If the server ends a connection right after accepting it, the connection breaks before its waiting caller can handle this event,
      // which would otherwise end the process. The next query on the connection fails with the error.
      client.on("error", (error) => options.log.debug({ error: messageOf(error) }, "a store connection was lost"));
    });
    // An idle connection that breaks is replaced by the pool; the next query shows whether the store is away.
    this.#pool.on("error", (error) => options.log.debug({ error: messageOf(error) }, "idle store connection lost"));
  }

  get log(): Log {
    return this.#options.log;
  }

  /** A signal that aborts when this process closes its store. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** undefined: this is a tool that does not take part in the cluster's work. */
  get recovery(): Recovering | undefined {
    return this.#recovery;
  }

  /** The mode of the pooler, determined at the first connection. */
  get pooling(): Pooling {
    return this.#pooling;
  }

  /** True if signals are received over another URL than the URL for statements. */
  get listensElsewhere(): boolean {
    return this.#listenWay !== this.#way;
  }

  /** Sets the recovery: a statement that the store refuses because it may lack data then waits for it, and is repeated. */
  recoverBy(recovery: Recovering): void {
    this.#recovery = recovery;
  }

  /** Called before a connection's first use. The pool has a time limit for connecting, but not for a server that is silent afterwards. */
  async #settle(client: pg.ClientBase): Promise<void> {
    this.#connections.watch(client);
    await this.#inTime(client, async () => {
      const seen = await isPooled(client);
      if (seen) {
        this.#compiles = seen.compiles;
        if (this.#pooling === "none") this.#pooling = "transaction";
        nameOnlyWhile(() => this.#pooling === "session", client);
      } else await client.query(sessionSettings);
      // The connection may lead to another server than the one before.
      if (!this.#recovery) return;
      const { rows } = await client.query(`select ${standingSql(this.schema)}`);
      this.told(rows[0] as StandingRow, client);
    });
  }

  /**
   * Determines the mode of the pooler between this client and the server.
   * @param client a client from `connect` or `connectListener`, without other work
   */
  async poolingOf(client: pg.Client): Promise<Pooling> {
    if (!(await isPooled(client))) return "none";
    const notify = (channel: string) => this.query("", "select pg_notify($1, '')", [channel]);
    return (await keepsConnection(client, notify, this.clock)) ? "session" : "transaction";
  }

  /** Called when the pooler is proven to be in session mode: from now on statements are prepared by name. */
  inSessionMode(): void {
    if (this.#pooling === "transaction") this.#pooling = "session";
  }

  /**
   * Applies the store's report about itself: which server it is, whether its data is complete, and whether a standby may lack acknowledged
   * writes.
   * @param client the connection over which the report came, if known
   * @throws STORE_UNREACHABLE when another server has replaced this one
   */
  told({ whole, recovery, standby, ...server }: StandingRow, client?: pg.ClientBase): void {
    this.#follow(server, client);
    this.memory.standbys(standby);
    this.#recovery?.found(whole, recovery);
  }

  /**
   * Two servers may answer at once: a former primary that stalled continues where it stopped, and clients still connected to it would go on
   * working there. The server with the higher timeline is valid, and connections to the other server are cut.
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

  /** Opens a connection outside the pool. The caller ends it. */
  connect(): Promise<pg.Client> {
    return this.#connect(this.#way, "carillon");
  }

  /** The same for a connection that runs LISTEN. */
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
    // A pending query rejects when the connection breaks; without a listener this event would end the process.
    client.on("error", (error) => this.#options.log.debug({ error: messageOf(error) }, "a store connection was lost"));
    try {
      await client.connect();
    } catch (error) {
      throw this.#failed(error, hosts);
    }
    this.#connections.watch(client);
    return client;
  }

  /** Runs a statement with one try. A `name` makes it a prepared statement of each connection. */
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
   * Runs a statement without values that PostgreSQL refuses in a transaction, on a connection of its own. It is cancelled at the server
   * after `mostMs`: then it rejects with SQL state 57014.
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

  /** Runs `work` in the caller's transaction if there is one, else in a new one. */
  within<T>(client: SqlClient | undefined, work: (client: SqlClient) => Promise<T>): Promise<T> {
    return client ? work(client).catch((error) => this.refused(error)) : this.transaction(work);
  }

  /** Handles a failed statement in a caller's transaction, which only the caller can restart. @throws the error for the caller */
  refused(error: unknown): never {
    const failure = this.#failed(error);
    if (isCarillonError(failure, "STORE_RECOVERING")) this.#recovery?.found(false, null);
    throw failure;
  }

  /** A statement that was refused because the store may lack data has changed nothing, so it is repeated after the recovery. */
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

  /** Returns the error for the caller. A server that is gone or refuses writes may be replaced, so the next connections search again. */
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
   * Runs, with one try, a statement that the server always answers at once. No answer in time means that the server or the network is
   * silent: then all connections that have been silent for as long are cut, so that callers that wait for them try again, and do not block
   * the pool until the operating system closes the connections.
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

  /** Cancels the statement that the client waits for; resolves within 250 ms, whether or not the server has accepted the request. */
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

  /** Runs `asked`; if there is no answer in time, cuts the connection. */
  async #inTime<T>(client: pg.ClientBase, asked: () => Promise<T>, onSilent: () => void = () => undefined): Promise<T> {
    const answerMs = this.#answerMs;
    let silent = false;
    let answered = false;
    const cancel = this.clock.after(answerMs, () => {
      // After a process was stopped, its timers fire before it reads data that arrived meanwhile, so it first gets a chance to read.
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
   * Runs `work` in one transaction on one connection; one try, except while the store refuses it during a recovery. The server ends the
   * transaction if it is idle for 10 s, because if a machine vanished between two statements, its locks would otherwise be held until the
   * operating system closes the connection two hours later.
   */
  transaction<T>(work: (client: SqlClient) => Promise<T>): Promise<T> {
    return this.#recovered(() => this.#transaction("", work));
  }

  /**
   * The same for the store's recovery, which must write while the store refuses other writes; repeated until the store answers. Heartbeats
   * wait for the recovery, so it must itself detect a connection to a silent server, such as a former primary that has stalled.
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

  /** Holds a connection of the pool for as long as `work` takes. A broken or spoiled connection does not go back to the pool. */
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
    // A connection that breaks rejects its query and also emits this event, which would end the process if it had no listener.
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
   * Repeats `work` while the store is away or asks for another try. Only for work that can safely be repeated.
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

  /** Ends all repeating. @param withinMs how long statements under way may take; then their connections are cut */
  async close(withinMs = this.#answerMs): Promise<void> {
    this.#closing.abort();
    this.#cancelLook();
    this.#ended ??= this.#pool.end();
    if (!(await settlesWithin(this.clock, withinMs, this.#ended))) this.abandon();
    else await this.#ended;
  }

  /** Makes all callers that wait for the store fail at once, as if the store could not be reached. */
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

  /** Cuts silent connections, and once more later, because a connection that had just received data may be silent since. */
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
