import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { unavailable } from "./binaries.ts";
import { bringUp, type Started } from "./bring-up.ts";
import { noStore } from "./data.ts";
import { locate } from "./place.ts";
import { names, port } from "./settings.ts";
import { supervise } from "./supervision.ts";

export interface EmbeddedOptions {
  /** The store's folder; default `.carillon` in the working directory. Created if missing and `create` is true. */
  directory?: string;
  /** A folder with the programs `postgres` and `initdb`, used instead of those of the npm package or the operating system. */
  binaries?: string;
  /** True: creates an empty store if there was none; a lost store is never replaced. Default: true, unless NODE_ENV is "production". */
  create?: boolean | undefined;
  /**
   * Called with one line of text for each notable event, such as first start, recovery, loss and return of the server. Default:
   * no logging.
   */
  log?: (line: string) => void;
  /**
   * Aborts opening, which then rejects with CANCELLED, or with the signal's reason if that is a CarillonError; has no effect on
   * an opened store.
   */
  signal?: AbortSignal;
}

/** A process's use of the embedded server. The process counts as a user of the server from opening until `release` or its own end. */
export interface EmbeddedStore {
  /** A PostgreSQL URL for `pg` and libpq. It stays the same when the server is restarted. */
  readonly url: string;
  /** The content of `url` as options for `pg`. `host` is the folder of the Unix socket. */
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly user: string;
    readonly database: string;
    readonly ssl: false;
  };
  /** The absolute path of the store's folder as given to `openEmbedded`. */
  readonly directory: string;
  /** The absolute path of the server's data folder; it may be outside `directory`, if the file `location` names another folder. */
  readonly data: string;
  /** The server's version, such as "18.4". */
  readonly version: string;
  /**
   * What opening found: no store (`first`), a stopped server (`again`), a running server (`attached`), or a crashed server (`recovered`).
   */
  readonly started: Started;
  /**
   * Resolves once the server accepts connections and counts this process as a user. A lost server is restarted automatically;
   * call this to wait for that, or to get the error if it fails (the attempts continue).
   * @throws STORE_MISSING, STORE_FULL, STORE_READ_ONLY, STORE_REFUSED, EMBEDDED_FAILED, EMBEDDED_UNAVAILABLE; STOPPED after
   * `release`; CANCELLED if `release` is called meanwhile
   */
  revive(): Promise<void>;
  /**
   * Stops counting this process as a user. If it was the last user, stops the server, unless the server belongs to another
   * container; this ends all connections. Waits until the server has ended. Close connection pools first. Idempotent.
   * @throws EMBEDDED_FAILED if the server does not stop; CANCELLED if the start lock stays held for too long
   */
  release(): Promise<void>;
}

/**
 * Opens the embedded PostgreSQL: creates, starts, recovers or attaches to it, as needed. docs/operate/embedded.md describes its guarantees,
 * docs/operate/embedded-failures.md its failures.
 * @throws STORE_MISSING, EMBEDDED_UNAVAILABLE, EMBEDDED_FAILED, STORE_READ_ONLY, STORE_FULL, STORE_REFUSED, CANCELLED
 */
export async function openEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedStore> {
  const { binaries, log = () => undefined, signal } = options;
  const { directory = ".carillon", create = process.env.NODE_ENV !== "production" } = options;
  // Windows is not supported: a server there would need a TCP port, a password and another way to drop privileges.
  if (process.platform === "win32") throw unavailable(["the embedded store needs Unix sockets; WSL has them"]);
  // Checked before `locate`, because that creates the folder.
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
