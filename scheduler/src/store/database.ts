import { setMaxListeners } from "node:events";
import pg from "pg";
import { type Clock, pause } from "../clock.ts";
import { CarillonError, isCarillonError, messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Random } from "../random.ts";
import type { SqlClient } from "../store.ts";
import { types } from "./columns.ts";
import { Connections, destroy, type Heard } from "./connections.ts";

export interface DatabaseOptions {
  /** postgres:// URL; pg's environment variables fill what it leaves out. */
  url: string;
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

/** What makes connections: pg, or what a test of the whole cluster puts between it and the server. */
export interface Driver {
  pool(config: pg.PoolConfig): pg.Pool;
  client(config: pg.ClientConfig): pg.Client;
}

const pgDriver: Driver = {
  pool: (config) => new pg.Pool(config),
  client: (config) => new pg.Client(config),
};

const defaultAnswerMs = 5_000;
/** Left to the system it would be two hours. */
const keepAliveAfterMs = 10_000;
/** Of a client that is no more the server ends the transaction after this long, and its locks with it. */
const transactionIdle = "10s";
const firstPauseMs = 50;
const longestPauseMs = 2_000;

/**
 * One PostgreSQL and the manners for talking to it: errors become Carillon's, and `persist` repeats what may be
 * repeated until the store answers, with back-off, telling of the outage once and of its end once.
 */
export class Database {
  readonly schema: string;
  readonly clock: Clock;
  readonly #options: DatabaseOptions;
  readonly #driver: Driver;
  readonly #answerMs: number;
  readonly #pool: pg.Pool;
  readonly #connections = new Connections();
  readonly #closing = new AbortController();
  #downSince: number | null = null;
  #cancelLook = (): void => undefined;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#driver = options.driver ?? pgDriver;
    this.#answerMs = options.answerMs ?? defaultAnswerMs;
    this.clock = options.clock;
    this.schema = quoteIdentifier(options.schema);
    // As many wait for the store's return as there is work; Node would take more than ten for a leak.
    setMaxListeners(0, this.#closing.signal);
    this.#pool = this.#driver.pool({
      connectionString: options.url,
      max: options.connectionsMax,
      types,
      connectionTimeoutMillis: this.#answerMs,
      idleTimeoutMillis: 30_000,
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

  /**
   * Before its first use. Of statements that take milliseconds PostgreSQL would compile those that it takes for costly, of
   * large tables, for a second at each call. The pool gives up on whom it connects to, not on who is silent from then on.
   */
  async #settle(client: pg.ClientBase): Promise<void> {
    this.#connections.watch(client);
    await this.#inTime(client, () => client.query("set jit = off"));
  }

  /** A connection of its own, outside the pool, for LISTEN. The caller ends it. */
  async connect(): Promise<pg.Client> {
    const client = this.#driver.client({
      connectionString: this.#options.url,
      types,
      connectionTimeoutMillis: this.#answerMs,
      application_name: "carillon listener",
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveAfterMs,
    });
    // Its query rejects when it breaks; unheard, this event would end the process.
    client.on("error", (error) => this.#options.log.debug({ error: messageOf(error) }, "a store connection was lost"));
    try {
      await client.connect();
    } catch (error) {
      throw storeError(error);
    }
    this.#connections.watch(client);
    return client;
  }

  /** One try. `name` makes it a prepared statement of each connection. */
  async query<Row = Record<string, unknown>>(name: string, text: string, values: unknown[] = []): Promise<Row[]> {
    try {
      const { rows } = await this.#pool.query({ name, text, values });
      return rows as Row[];
    } catch (error) {
      throw storeError(error);
    }
  }

  /**
   * One try of a statement that is always answered at once. No answer in time means that the server, or the way to it,
   * is silent: then the connections that have been silent for as long are cut, so that whatever waits on them tries
   * anew, and does not hold the pool until the system gives them up.
   */
  async ask<Row = Record<string, unknown>>(name: string, text: string, values: unknown[] = []): Promise<Row[]> {
    const heard = this.#connections.mark();
    return this.#hold(
      async (client) => {
        const asked = () => client.query({ name, text, values });
        const { rows } = await this.#inTime(client, asked, () => this.#silent(heard));
        return rows as Row[];
      },
      (error) => {
        if (/timeout/.test(messageOf(error))) this.#silent(heard);
      },
    );
  }

  /** Cuts the connection when nothing is answered in time. */
  async #inTime<T>(client: pg.ClientBase, asked: () => Promise<T>, onSilent: () => void = () => undefined): Promise<T> {
    const answerMs = this.#answerMs;
    let silent = false;
    let answered = false;
    const cancel = this.clock.after(answerMs, () => {
      // A process that was stopped finds its timers due before it reads what came meanwhile: it reads first.
      this.clock.after(0, () => {
        if (answered) return;
        silent = true;
        destroy(client);
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
   * Runs `work` in one transaction on one connection; one try. It stands idle for 10 s at most: a machine that vanishes
   * between two statements would else keep its locks until the system gives the connection up, two hours later.
   */
  transaction<T>(work: (client: SqlClient) => Promise<T>): Promise<T> {
    return this.#hold(async (client, spoil) => {
      try {
        await client.query(`begin; set local idle_in_transaction_session_timeout = '${transactionIdle}'`);
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
      throw storeError(error);
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
      throw storeError(error);
    } finally {
      client.off("error", spoil);
      client.release(broken);
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
        if (isAway(error)) await this.#away(error);
        await pause(this.clock, wait * (0.5 + this.#options.random.next() / 2), signal ?? this.#closing.signal);
        wait = Math.min(wait * 2, longestPauseMs);
      }
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelLook();
    await this.#pool.end();
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

/** SQL states, and Node's socket errors, by what they mean to a caller. */
function storeError(error: unknown): unknown {
  if (error instanceof CarillonError || !(error instanceof Error)) return error;
  const state = (error as { code?: string }).code ?? "";
  const text = messageOf(error);
  const as = (code: CarillonError["code"], message: string, hint: string) =>
    new CarillonError(code, message, { cause: error, hint });
  // pg refuses by itself, without a state, where the server wants a password and the URL has none.
  if (/^28/.test(state) || state === "3D000" || state === "42501" || /^SASL: /.test(text)) {
    return as(
      "STORE_REFUSED",
      `the store refused: ${text}`,
      "Check the URL's user, password and database, and the user's rights on the schema.",
    );
  }
  if (/after calling end on the pool/.test(text))
    return as(
      "STOPPED",
      "the store was closed by this process before it was asked",
      "Ask before `stop`, or make a new one.",
    );
  if (state === "25006") {
    return as("STORE_READ_ONLY", `the store accepts no writes: ${text}`, "Give the URL of the primary server.");
  }
  if (state === "53100")
    return as("STORE_FULL", `the store's disk is full: ${text}`, "Free space on the database server.");
  // A deadlock, a serialization failure, a lock that was not to be had: the transaction is certainly rolled back.
  if (/^(40001|40P01|55P03)$/.test(state))
    return as(
      "STORE_CONFLICT",
      `the store could not, for another transaction: ${text}`,
      "Nothing was changed: try again.",
    );
  const gone =
    // 25P03: the server has ended a transaction that stood idle, and its connection with it. The last four: this process
    // or its machine has no more descriptors, ports or memory for one; others still may.
    /^(ECONN|EPIPE|ENOTFOUND|ENOENT|EAI_|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|08|25P03|57P0|53[234]|EMFILE|ENFILE|EADDRNOTAVAIL|ENOBUFS)/.test(
      state,
    ) ||
    /terminated unexpectedly|timeout exceeded when trying to connect|Connection terminated|not queryable|timeout expired/.test(
      text,
    ) ||
    error instanceof AggregateError;
  if (gone) {
    const cause = error instanceof AggregateError ? error.errors.map(messageOf).join("; ") : text;
    return as(
      "STORE_UNREACHABLE",
      `the store cannot be reached: ${cause}`,
      "Check that PostgreSQL runs and that the URL's host and port are right.",
    );
  }
  return error;
}

function isAway(error: unknown): boolean {
  return error instanceof CarillonError && ["STORE_UNREACHABLE", "STORE_FULL", "STORE_READ_ONLY"].includes(error.code);
}

/** Away, or a conflict of two transactions that another try resolves. */
function isTransient(error: unknown): boolean {
  return isAway(error) || isCarillonError(error, "STORE_CONFLICT");
}
