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
  /** A postgres:// URL with one or several hosts. pg's environment variables supply parts that it omits. */
  url: string;
  /** The URL for LISTEN, needed if `url` leads to a pooler in transaction mode; default: `url`. */
  listenUrl?: string | undefined;
  schema: string;
  clock: Clock;
  random: Random;
  log: Log;
  /** The most connections of the pool; the connection for LISTEN is not counted. */
  connectionsMax: number;
  /** The time limit for a connection and for the answer to `ask`, in ms; default: 5,000. */
  answerMs?: number;
  /** Called while the server cannot be reached, to restart an embedded server. */
  revive?: () => Promise<void>;
  /** Creates the connections; default: pg. */
  driver?: Driver;
}

const defaultAnswerMs = 5_000;
/** A connection idle for this long, in ms, sends its first keep-alive probe. The operating system's default is two hours. */
const keepAliveAfterMs = 10_000;
/** The server ends a transaction that is idle for this long and releases its locks, in case its client has vanished. */
const transactionIdle = "10s";
/** The time limit for delivering a cancel request to the server, in ms. */
const cancelMs = 250;
/** The delay before a cancel request is sent again, in ms, in case the first was lost. */
const cancelAgainMs = 1_000;
const firstPauseMs = 50;
const longestPauseMs = 2_000;
/** The longest pause between tries if the URL has several hosts, in ms: another host may have been promoted meanwhile. */
const longestPauseAmongHostsMs = 400;

/**
 * The connections to one PostgreSQL database and the rules for using them: errors become CarillonErrors, and `persist` repeats work with
 * back-off until the store answers. The beginning and the end of each outage are logged once.
 */
export class Database {
  readonly schema: string;
  readonly clock: Clock;
  /** Writes that were acknowledged to this process and that a promoted standby may lack. */
  readonly memory = new Memory();
  readonly #options: DatabaseOptions;
  #recovery: Recovering | undefined;
  /** The present primary, out of all servers to which this process has been connected. */
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
    // Any number of operations may wait for the store to return, and with more than ten listeners Node would warn of a leak.
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
      // If the server closes a connection right after accepting it, this event is emitted before the waiting caller has its own listener,
      // and without any listener it would end the process. The next query on the connection fails with the error.
      client.on("error", (error) => options.log.debug({ error: messageOf(error) }, "a store connection was lost"));
      client.on("error", () => this.#recovery?.lost());
    });
    // The pool replaces an idle connection that breaks. The next query detects whether the store is unavailable.
    this.#pool.on("error", (error) => options.log.debug({ error: messageOf(error) }, "idle store connection lost"));
  }

  get log(): Log {
    return this.#options.log;
  }

  /** A signal that aborts when this process closes its store. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The recovery after lost data; undefined in a command-line tool that does not take part in the cluster's work. */
  get recovery(): Recovering | undefined {
    return this.#recovery;
  }

  /** The pooler's mode: "none" without a pooler; with a pooler "transaction", until session mode is proven. */
  get pooling(): Pooling {
    return this.#pooling;
  }

  /** True if signals are received over another URL than the URL for statements. */
  get listensElsewhere(): boolean {
    return this.#listenWay !== this.#way;
  }

  /** Sets the recovery. Statements that the store refuses because it may have lost data then wait for the recovery and are repeated. */
  recoverBy(recovery: Recovering): void {
    this.#recovery = recovery;
  }

  /** Prepares a connection before its first use. The pool's time limit covers connecting, but not a server that is silent afterwards. */
  async #settle(client: pg.ClientBase): Promise<void> {
    this.#connections.watch(client);
    await this.#inTime(client, async () => {
      const seen = await isPooled(client, sessionSettings);
      if (seen) {
        this.#compiles = seen.compiles;
        if (this.#pooling === "none") this.#pooling = "transaction";
        nameOnlyWhile(() => this.#pooling === "session", client);
      }
      // This connection may lead to another server than earlier connections.
      if (!this.#recovery) return;
      const { rows } = await client.query(`select ${standingSql(this.schema)}`);
      this.told(rows[0] as StandingRow, client);
    });
  }

  /**
   * Determines the mode of the pooler between this client and the server.
   * @param client an idle client from `connect` or `connectListener`
   */
  async poolingOf(client: pg.Client): Promise<Pooling> {
    if (!(await isPooled(client))) return "none";
    const notify = (channel: string) => this.query("", "select pg_notify($1, '')", [channel]);
    return (await keepsConnection(client, notify, this.clock)) ? "session" : "transaction";
  }

  /** Called when the pooler is proven to be in session mode. From then on statements are prepared by name. */
  inSessionMode(): void {
    if (this.#pooling === "transaction") this.#pooling = "session";
  }

  /**
   * Applies what the store reports about itself: which server it is, whether its data is complete, and whether a standby may lack
   * acknowledged writes.
   * @param client the connection over which the report was received, if known
   * @throws STORE_UNREACHABLE if another server has replaced the one that sent the report
   */
  told({ whole, recovery, standby, relaxed, ...server }: StandingRow, client?: pg.ClientBase): void {
    this.#follow(server, client);
    this.memory.standbys(standby, relaxed);
    this.#recovery?.found(whole, recovery);
  }

  /**
   * Finds out which server is the primary. If a stalled former primary resumes, two servers answer, and clients that are still connected to
   * the former one would go on working there. The primary is the server with the higher timeline; connections to the other one are cut.
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

  /** Opens a connection outside the pool. The caller closes it. */
  connect(): Promise<pg.Client> {
    return this.#connect(this.#way, "carillon");
  }

  /** Opens a connection for LISTEN, outside the pool. The caller closes it. */
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

  /** Runs a statement once, and again only if the store refused it in a recovery. A `name` prepares it; an empty name does not. */
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
   * Runs a statement without values that PostgreSQL refuses in a transaction, on a dedicated connection. After `mostMs` it is cancelled at
   * the server, and the call rejects with SQL state 57014.
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

  /** Converts the error of a statement in a caller's transaction, which only the caller can restart. @throws the error for the caller */
  refused(error: unknown): never {
    const failure = this.#failed(error);
    if (isCarillonError(failure, "STORE_RECOVERING")) this.#recovery?.found(false, null);
    throw failure;
  }

  /**
   * Runs `asked`, and repeats it after the recovery if the store refused it because of lost data: a refused statement has changed nothing.
   */
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

  /** Converts an error for the caller. If the server is gone or refuses writes, the next connections look for the primary again. */
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
   * Runs a statement that the server always answers quickly. Repeats it only if the store refused it during a recovery. If no answer comes
   * in time, cuts all connections that have received nothing since this call began, so that the statements on them fail at once. Otherwise
   * they would block the pool until the operating system closes the connections.
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

  /** Cancels the statement that the client waits for. Resolves within 250 ms, even if the server has not accepted the request. */
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

  /** Runs `asked`. Cuts the connection if no answer comes within the time limit. */
  async #inTime<T>(client: pg.ClientBase, asked: () => Promise<T>, onSilent: () => void = () => undefined): Promise<T> {
    const answerMs = this.#answerMs;
    let silent = false;
    let answered = false;
    const cancel = this.clock.after(answerMs, () => {
      // After a stop, a process runs its timers before it reads data that has arrived meanwhile; this second timer lets it read first.
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
   * Runs `work` once in a transaction on one connection, and again only if the store refused it during a recovery. The server ends the
   * transaction if it is idle for 10 s: if the client's machine has vanished, its locks would otherwise be held for two hours.
   */
  transaction<T>(work: (client: SqlClient) => Promise<T>): Promise<T> {
    return this.#recovered(() => this.#transaction("", work));
  }

  /**
   * Runs a transaction of the recovery, which may write while the store refuses other writes; repeated until the store answers. Heartbeats
   * wait for the recovery, so it must itself detect a server that does not respond, such as a former primary that has stalled.
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

  /** Takes a connection from the pool for the duration of `work`. The pool does not get a broken connection back. */
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
    // When a connection breaks, its query rejects and this event is emitted, which would end the process without a listener.
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

  /** Repeats `work`, which must be safe to repeat, after transient errors. When `signal` aborts, throws the last error. */
  async persist<T>(work: (again: boolean) => Promise<T>, signal?: AbortSignal): Promise<T> {
    let wait = firstPauseMs;
    for (let again = false; ; again = true) {
      try {
        const result = await work(again);
        this.#up();
        return result;
      } catch (error) {
        const ends = signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal;
        if (!isTransient(error) || ends.aborted) throw error;
        if (isStoreAway(error)) await this.#away(error);
        await pause(this.clock, wait * (0.5 + this.#options.random.next() / 2), ends);
        if (ends.aborted) throw error;
        wait = Math.min(wait * 2, this.#way.hosts ? longestPauseAmongHostsMs : longestPauseMs);
      }
    }
  }

  /** Ends all repetition and closes the pool. @param withinMs the time that running statements get, in ms; then connections are cut */
  async close(withinMs = this.#answerMs): Promise<void> {
    this.#closing.abort();
    this.#cancelLook();
    this.#ended ??= this.#pool.end();
    if (!(await settlesWithin(this.clock, withinMs, this.#ended))) this.abandon();
    else await this.#ended;
  }

  /** Closes all connections at once, so that all callers that wait for the store fail, as if the store could not be reached. */
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

  /** Cuts silent connections now, and again later, because a connection that had just received data may have become silent. */
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
