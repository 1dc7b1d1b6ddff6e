import pg from "pg";
import { cancelStatement, isAtWork } from "./cancel.ts";

/** Creates the connections: with pg, or in a test of the whole cluster with a simulated network between pg and the server. */
export interface Driver {
  pool(config: pg.PoolConfig): pg.Pool;
  client(config: pg.ClientConfig): pg.Client;
  /**
   * Cancels, at the server, the statement that this client waits for. If the driver lacks this method, the server continues statements that
   * were given up.
   */
  cancel?(client: pg.ClientBase): { taken: Promise<void>; drop: () => void };
}

export const pgDriver: Driver = {
  pool: (config) => new pg.Pool(config),
  client: (config) => new pg.Client(config),
  cancel: cancelStatement,
};

/**
 * SQL expression that makes the settings of a connection. JIT is off, because PostgreSQL overestimates the cost of statements on large
 * tables and then spends a second on compiling statements that take milliseconds. The server checks every second whether its client is
 * still connected, on platforms where it can, because it would otherwise continue the statements of a killed process.
 */
export const sessionSettings =
  "concat(set_config('jit', 'off', false), set_config('default_transaction_isolation', 'read committed', false), case when version() ~ 'linux|darwin|bsd' then set_config('client_connection_check_interval', '1s', false) end)";

/** For each open connection, the number of bytes that it had received at one moment. */
export type Heard = ReadonlyMap<pg.ClientBase, number>;

/**
 * The open connections of this process. If a network drops packets, connections stay open for a quarter of an hour, and every caller that
 * waits for a reply is blocked. So the code that detects the missing reply cuts all connections that receive nothing.
 */
export class Connections {
  readonly #open = new Set<pg.ClientBase>();
  readonly #givenUp = new WeakSet<pg.ClientBase>();
  readonly #cancel: (client: pg.ClientBase) => Promise<void>;

  /** @param cancel cancels, at the server, the statement that the client waits for; resolves soon, even if it could not cancel */
  constructor(cancel: (client: pg.ClientBase) => Promise<void>) {
    this.#cancel = cancel;
  }

  /** Tracks the connection as open until it ends. */
  watch(client: pg.ClientBase): void {
    this.#open.add(client);
    client.once("end", () => this.#open.delete(client));
  }

  mark(): Heard {
    return new Map([...this.#open].map((client) => [client, streamOf(client).bytesRead]));
  }

  /**
   * Cuts the connections that have received nothing since `since`, including idle ones, because their next request would get no answer
   * either. Requests on these connections fail as on any broken connection.
   */
  cut(since: Heard): void {
    for (const [client, bytes] of since)
      if (this.#open.has(client) && streamOf(client).bytesRead === bytes) this.giveUp(client);
  }

  /**
   * Cuts all connections, because they lead to a server that is no longer the primary.
   * @param but a connection to keep, because it leads to another server
   */
  cutAll(but?: pg.ClientBase): void {
    for (const client of this.#open) if (client !== but) this.giveUp(client);
  }

  /** Cuts all connections without sending cancel requests, because this process must send nothing more to the store. */
  destroyAll(): void {
    for (const client of this.#open) destroy(client);
  }

  /**
   * Cuts one connection. A server that executes a statement or waits for a lock does not notice that its client has gone, so the statement
   * is cancelled first; a pooler forwards the cancellation only while its client is connected. The connection's data is no longer read, so
   * that its statements fail as on a broken connection, and not with the server's error about the cancellation.
   */
  giveUp(client: pg.ClientBase): void {
    if (this.#givenUp.has(client)) return;
    this.#givenUp.add(client);
    streamOf(client).pause();
    if (isAtWork(client)) void this.#cancel(client).finally(() => destroy(client));
    else destroy(client);
  }

  isGivenUp(client: pg.ClientBase): boolean {
    return this.#givenUp.has(client);
  }
}

/** Closes the socket at once, because pg's `end` would first send a termination message and wait for the server. */
export function destroy(client: pg.ClientBase): void {
  streamOf(client).destroy();
}

interface Stream {
  bytesRead: number;
  pause(): void;
  destroy(): void;
}

function streamOf(client: pg.ClientBase): Stream {
  return (client as unknown as { connection: { stream: Stream } }).connection.stream;
}
