import pg from "pg";
import { cancelStatement, isAtWork } from "./cancel.ts";

/** Creates the connections: pg, or in a test of the whole cluster a simulation between pg and the server. */
export interface Driver {
  pool(config: pg.PoolConfig): pg.Pool;
  client(config: pg.ClientConfig): pg.Client;
  /** Cancels, at the server, the statement that this client waits for; without this method the server continues abandoned statements. */
  cancel?(client: pg.ClientBase): { taken: Promise<void>; drop: () => void };
}

export const pgDriver: Driver = {
  pool: (config) => new pg.Pool(config),
  client: (config) => new pg.Client(config),
  cancel: cancelStatement,
};

/**
 * If PostgreSQL's JIT compiler estimates statements on large tables as costly, it spends a second per call on statements that take
 * milliseconds, so it is off. Where its platform can, the server also checks every second whether its client is still connected, because
 * otherwise the statements of a killed process go on.
 */
export const sessionSettings =
  "set jit = off; set default_transaction_isolation = 'read committed'; select set_config('client_connection_check_interval', '1s', false) where version() ~ 'linux|darwin|bsd'";

/** For each open connection, the number of bytes received up to some moment. */
export type Heard = ReadonlyMap<pg.ClientBase, number>;

/**
 * The open connections. If a network drops packets, connections stay open for a quarter of an hour, and every caller that waits for a reply
 * is blocked. So the code that detects the silence cuts the connections on which nothing is received.
 */
export class Connections {
  readonly #open = new Set<pg.ClientBase>();
  readonly #givenUp = new WeakSet<pg.ClientBase>();
  readonly #cancel: (client: pg.ClientBase) => Promise<void>;

  /** @param cancel cancels at the server the statement that the client waits for; resolves soon, whether or not it could */
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
   * Cuts the connections that have received nothing since `since`, including idle ones, whose next request would also get no answer.
   * Requests on them fail as on any broken connection.
   */
  cut(since: Heard): void {
    for (const [client, bytes] of since)
      if (this.#open.has(client) && streamOf(client).bytesRead === bytes) this.giveUp(client);
  }

  /**
   * Cuts all connections, because they lead to a server that is no longer the right one. @param but a connection to keep, which leads to
   * another server
   */
  cutAll(but?: pg.ClientBase): void {
    for (const client of this.#open) if (client !== but) this.giveUp(client);
  }

  /** Cuts all connections and cancels no statement, because this process must send the store no more requests. */
  destroyAll(): void {
    for (const client of this.#open) destroy(client);
  }

  /**
   * Cuts one connection. While a server works or waits for a lock it does not notice that its client has gone, so the statement is
   * cancelled first; a pooler forwards the cancellation only while its client is connected. Nothing more is read from the connection, so
   * that its statements fail as on a broken connection, and not with the server's answer to the cancellation.
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

/** Closes the socket at once: pg's own `end` would first send a termination message and wait for the server. */
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
