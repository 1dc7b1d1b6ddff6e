import pg from "pg";
import { cancelStatement, isAtWork } from "./cancel.ts";

/** What makes connections: pg, or what a test of the whole cluster puts between it and the server. */
export interface Driver {
  pool(config: pg.PoolConfig): pg.Pool;
  client(config: pg.ClientConfig): pg.Client;
  /** Ends at the server the statement that this client waits for; without it the server goes on with what is given up. */
  cancel?(client: pg.ClientBase): { taken: Promise<void>; drop: () => void };
}

export const pgDriver: Driver = {
  pool: (config) => new pg.Pool(config),
  client: (config) => new pg.Client(config),
  cancel: cancelStatement,
};

/**
 * Of statements that take milliseconds PostgreSQL would compile those that it takes for costly, of large tables, for a second
 * at each call. And it looks each second whether the client is there still for which it works or waits, where it can: else
 * the statements of a process that was killed go on.
 */
export const sessionSettings =
  "set jit = off; set default_transaction_isolation = 'read committed'; select set_config('client_connection_check_interval', '1s', false) where version() ~ 'linux|darwin|bsd'";

/** How much had been heard on each open connection at some moment. */
export type Heard = ReadonlyMap<pg.ClientBase, number>;

/**
 * The connections that are open. A network that swallows packets ends none of them for a quarter of an hour, and holds
 * up whatever waits for an answer on one: so whoever learns of the silence cuts those on which nothing is heard.
 */
export class Connections {
  readonly #open = new Set<pg.ClientBase>();
  readonly #givenUp = new WeakSet<pg.ClientBase>();
  readonly #cancel: (client: pg.ClientBase) => Promise<void>;

  /** @param cancel ends at the server what the client waits for; resolves soon, whether or not it could */
  constructor(cancel: (client: pg.ClientBase) => Promise<void>) {
    this.#cancel = cancel;
  }

  /** Open from now until it ends. */
  watch(client: pg.ClientBase): void {
    this.#open.add(client);
    client.once("end", () => this.#open.delete(client));
  }

  mark(): Heard {
    return new Map([...this.#open].map((client) => [client, streamOf(client).bytesRead]));
  }

  /**
   * Cuts those on which nothing was heard since, the idle ones too, whose next question would find the same silence.
   * What is asked on them fails as on any connection that breaks.
   */
  cut(since: Heard): void {
    for (const [client, bytes] of since)
      if (this.#open.has(client) && streamOf(client).bytesRead === bytes) this.giveUp(client);
  }

  /** Cuts all: the server that they lead to is no longer the one to talk to. @param but one that leads elsewhere */
  cutAll(but?: pg.ClientBase): void {
    for (const client of this.#open) if (client !== but) this.giveUp(client);
  }

  /** Cuts all, and cancels nothing: this process asks nothing more of the store. */
  destroyAll(): void {
    for (const client of this.#open) destroy(client);
  }

  /**
   * Cuts one. A server does not notice while it works, or waits for a lock, that its client has gone, so the statement is
   * cancelled first; a pooler passes that on only while its client is connected. Nothing more is read from the connection:
   * its statements fail as on one that broke, and not with the server's answer to the cancellation.
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

/** pg's own `end` says goodbye first, and waits for the other side. */
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
