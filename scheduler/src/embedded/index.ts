import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { unavailable } from "./binaries.ts";
import { bringUp, type Started } from "./bring-up.ts";
import { noStore } from "./data.ts";
import { locate } from "./place.ts";
import { names, port } from "./settings.ts";
import { supervise } from "./supervision.ts";

export interface EmbeddedOptions {
  /** The store's folder; default `.carillon` in the current folder. Created if missing. */
  directory?: string;
  /** A folder with `postgres` and `initdb` to use instead of the npm package's or the machine's. */
  binaries?: string;
  /** Create an empty store if none exists; default true, but false where NODE_ENV is "production". A lost store is never replaced. */
  create?: boolean | undefined;
  /** Receives one line of text for each notable event: first start, recovery, loss and revival. Default: nothing is logged. */
  log?: (line: string) => void;
  /** Gives up opening (not the store once opened): rejects with CANCELLED. */
  signal?: AbortSignal;
}

/** One use of the private server. The process counts as the server's user from opening until `release` or its own end. */
export interface EmbeddedStore {
  /** A PostgreSQL URL that `pg` and libpq accept. The URL stays the same through every restart of the server. */
  readonly url: string;
  /** The same as `url`, as options for `pg`. `host` is the folder of the Unix socket. */
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly user: string;
    readonly database: string;
    readonly ssl: false;
  };
  /** The absolute path of the store's folder, as given. */
  readonly directory: string;
  /** The absolute path of the server's data folder, which the file `location` may have put elsewhere. */
  readonly data: string;
  /** The server's version, such as "18.4". */
  readonly version: string;
  /**
   * The state in which opening found the store: nothing (`first`), a stopped store (`again`), a running one (`attached`), a crashed one
   * (`recovered`).
   */
  readonly started: Started;
  /**
   * Resolves once the server accepts connections and counts this process as a user. The store brings a lost server
   * back by itself; call this to wait for it, or to learn why it does not succeed (the attempts go on).
   * @throws STORE_FULL, STORE_READ_ONLY, EMBEDDED_FAILED, EMBEDDED_UNAVAILABLE; STOPPED after `release`
   */
  revive(): Promise<void>;
  /**
   * Stops counting this process as a user. If it was the last one, stops the server, which ends the server's connections, and waits for
   * its end. Close pools first. Idempotent.
   * @throws EMBEDDED_FAILED when the server does not stop
   */
  release(): Promise<void>;
}

/**
 * Opens the embedded PostgreSQL: creates, starts, recovers or attaches to it, as needed. docs/embedded.md describes its guarantees,
 * docs/embedded-failures.md its failures.
 * @throws STORE_MISSING, EMBEDDED_UNAVAILABLE, EMBEDDED_FAILED, STORE_READ_ONLY, STORE_FULL, STORE_REFUSED, CANCELLED
 */
export async function openEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedStore> {
  const { binaries, log = () => undefined, signal } = options;
  const { directory = ".carillon", create = process.env.NODE_ENV !== "production" } = options;
  // A server on Windows needs a port, a password and another way to shed rights: not built, so not pretended.
  if (process.platform === "win32") throw unavailable(["the embedded store needs Unix sockets; WSL has them"]);
  // Checked before the folder is created.
  if (!create && !existsSync(directory)) throw noStore(resolve(directory));
  const place = await locate(directory, log);
  const opened = await bringUp(place, { binaries, create, log, signal });
  const { revive, release } = supervise(place, opened, { binaries, log });
  return {
    url: `postgres://${names.user}@localhost:${port}/${names.database}?host=${encodeURIComponent(place.run)}&sslmode=disable`,
    connection: { host: place.run, port, user: names.user, database: names.database, ssl: false },
    directory: place.directory,
    data: place.data,
    version: opened.presence.version,
    started: opened.started,
    revive,
    release,
  };
}
