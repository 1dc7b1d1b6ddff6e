import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { unavailable } from "./binaries.ts";
import { bringUp, type Started } from "./bring-up.ts";
import { noStore } from "./data.ts";
import { locate } from "./place.ts";
import { names, port } from "./settings.ts";
import { supervise } from "./supervision.ts";

export interface EmbeddedOptions {
  /** Where the store lives; default `.carillon` in the current folder. Made when missing. */
  directory?: string;
  /** A folder with `postgres` and `initdb` to use instead of the npm package's or the machine's. */
  binaries?: string;
  /** Make an empty store where there is none; default true, where NODE_ENV is "production" false. Never where one was. */
  create?: boolean | undefined;
  /** One line of text for each thing worth telling: first start, recovery, loss and revival. Default: silence. */
  log?: (line: string) => void;
  /** Gives up opening (not the store once opened): rejects with CANCELLED. */
  signal?: AbortSignal;
}

/** One use of the private server. The process counts as its user from opening until `release` or its own end. */
export interface EmbeddedStore {
  /** A PostgreSQL URL that `pg` and libpq accept. It stays the same through every restart of the server. */
  readonly url: string;
  /** The same as `url`, as options for `pg`. `host` is the folder of the Unix socket. */
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly user: string;
    readonly database: string;
    readonly ssl: false;
  };
  /** The absolute path of the store's folder, as asked for. */
  readonly directory: string;
  /** The absolute path of the server's data folder, which the file `location` may have put elsewhere. */
  readonly data: string;
  /** The server's version, such as "18.4". */
  readonly version: string;
  /** What opening found: nothing (`first`), a stopped store (`again`), a running one (`attached`), a crashed one. */
  readonly started: Started;
  /**
   * Resolves once the server accepts connections and counts this process as a user. The store brings a lost server
   * back by itself; call this to wait for it, or to learn why it does not succeed (the attempts go on).
   * @throws STORE_FULL, STORE_READ_ONLY, EMBEDDED_FAILED, EMBEDDED_UNAVAILABLE; STOPPED after `release`
   */
  revive(): Promise<void>;
  /**
   * Stops counting this process as a user; the last one stops the server, which ends its connections, and waits for
   * its end. Close pools first. Idempotent.
   * @throws EMBEDDED_FAILED when the server does not stop
   */
  release(): Promise<void>;
}

/**
 * Opens the embedded PostgreSQL: makes, starts, recovers or attaches to it, whatever it takes. docs/embedded.md says
 * what holds, and how it fails.
 * @throws STORE_MISSING, EMBEDDED_UNAVAILABLE, EMBEDDED_FAILED, STORE_READ_ONLY, STORE_FULL, STORE_REFUSED, CANCELLED
 */
export async function openEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedStore> {
  const { binaries, log = () => undefined, signal } = options;
  const { directory = ".carillon", create = process.env.NODE_ENV !== "production" } = options;
  // Its server there needs a port, a password and another way to shed rights: not built, so not pretended.
  if (process.platform === "win32") throw unavailable(["the embedded store needs Unix sockets; WSL has them"]);
  // Before a folder is made there.
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
