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
  /** Create an empty store if none exists; default true, but false if NODE_ENV is "production". A store that was lost is never replaced. */
  create?: boolean | undefined;
  /**
   * Receives one line of text for each notable event: first start, recovery, loss and revival of the server. Default: nothing is logged.
   */
  log?: (line: string) => void;
  /** Aborts opening, which then rejects with CANCELLED; has no effect on an opened store. */
  signal?: AbortSignal;
}

/** A use of the private server by this process, which counts as the server's user from opening until `release` or its own end. */
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
  /** What opening found: no store (`first`), a stopped store (`again`), a running server (`attached`), a crashed server (`recovered`). */
  readonly started: Started;
  /**
   * Resolves once the server accepts connections and counts this process as a user. The store itself brings a lost server back; call this
   * to wait for that, or to get the error if it does not succeed (the attempts continue).
   * @throws STORE_FULL, STORE_READ_ONLY, EMBEDDED_FAILED, EMBEDDED_UNAVAILABLE; STOPPED after `release`
   */
  revive(): Promise<void>;
  /**
   * Stops counting this process as a user. If it was the last user, stops the server, which ends all connections to it, and waits until the
   * server has ended. Close connection pools first. Idempotent.
   * @throws EMBEDDED_FAILED if the server does not stop
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
  // Windows is not supported: a server there would need a port, a password and another way to give up rights.
  if (process.platform === "win32") throw unavailable(["the embedded store needs Unix sockets; WSL has them"]);
  // Checked before `locate` creates the folder.
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
