import pg from "pg";
import { CarillonError, messageOf } from "../base/errors.ts";
import { codeOf, serverFailure, throwIfAborted } from "./failure.ts";
import type { Place } from "./place.ts";
import { serverProcesses } from "./processes.ts";
import { stop } from "./server.ts";
import { names, port } from "./settings.ts";
import { holdStartLock } from "./start-lock.ts";

/**
 * This process's registration as a user of the server: a connection on which it holds a *shared* advisory lock. The kernel closes the
 * connection of a process that dies for any reason, and the server then releases the lock, so no dead process stays registered, and no pid,
 * file or heartbeat is needed. A process that leaves requests the same lock *exclusively*. If it gets the lock, it was the last user and
 * stops the server; a process that registers meanwhile waits until the server has ended, and starts it again.
 */
export interface Presence {
  readonly version: string;
  /** False if the store's role and database have not been created yet. */
  readonly complete: boolean;
  /** Resolves when the connection has ended. */
  readonly ended: Promise<void>;
  /**
   * True if the server accepts new connections and also answers on this one. An answer on this connection alone would not prove that the
   * server runs, because child processes of a killed server answer until they notice its end.
   */
  alive(signal: AbortSignal): Promise<boolean>;
  /** Creates the role and the database. */
  complement(): Promise<void>;
  /** Unregisters; stops the server if this was its last user. @returns false if the connection broke before the outcome was known */
  leave(place: Place, log: (line: string) => void): Promise<boolean>;
  /** Closes the connection without stopping the server. */
  drop(): void;
}

/** The key of the advisory lock: "carillon" in ASCII. Nothing else uses advisory locks in this database. */
const lock = "7161130679611977582";

/** How long a leaving process waits for the exclusive lock, in ms: the connection of a user that has just died may not be closed yet. */
const leaveWaitMs = 100;

/** The time limit for getting the start lock, in ms; longer than any process holds that lock to bring a server up. */
const startLockMs = 150_000;

/**
 * Registers this process as a user. "absent": no server listens. "busy": a server exists, but is starting, stopping or
 * recovering, or has no free connection.
 * @throws STORE_FULL, STORE_REFUSED, EMBEDDED_FAILED; CANCELLED or the signal's reason
 */
export async function attend(place: Place, signal: AbortSignal): Promise<Presence | "absent" | "busy"> {
  throwIfAborted(signal);
  const { client, drop } = prepare(place, `carillon embedded ${process.pid}`);
  let open = true;
  const ended = new Promise<void>((resolve) => client.once("end", () => resolve())).then(() => {
    open = false;
  });
  signal.addEventListener("abort", drop, { once: true });
  try {
    await client.connect();
    await client.query(`select pg_advisory_lock_shared(${lock})`);
    const { rows } = await client.query(
      "select current_setting('server_version') as version, exists (select from pg_database where datname = $1) as complete",
      [names.database],
    );
    const { version, complete } = rows[0] as { version: string; complete: boolean };
    // While a server stops, it may have ended the leaving user's connection, and with it that user's lock, but not this connection yet. It
    // accepts no new connections then, so a new connection is tried.
    if (!(await accepts(place, signal))) {
      drop();
      throwIfAborted(signal);
      return "busy";
    }
    // While idle, this connection must not prevent the process from exiting; while a query runs, it must.
    const socket = client as unknown as { ref(): void; unref(): void };
    socket.unref();
    const answers = () =>
      client.query("select 1").then(
        () => true,
        () => false,
      );
    return {
      version: version.split(" ")[0] as string,
      complete,
      ended,
      drop,
      async alive(until) {
        // The order of these two checks matters. A new server accepts connections only after all child processes of the previous server
        // have ended; so once a new connection was accepted, an answer on this connection comes from the new server.
        if (!open || !(await accepts(place, until))) return false;
        socket.ref();
        return answers().finally(() => socket.unref());
      },
      complement() {
        socket.ref();
        return complement(client).finally(() => socket.unref());
      },
      async leave(at, log) {
        socket.ref();
        try {
          await leave(client, at, log);
          return true;
        } catch (error) {
          if (passing.includes(codeOf(error))) return false;
          throw error;
        } finally {
          drop();
        }
      },
    };
  } catch (error) {
    drop();
    throwIfAborted(signal);
    return attendFailure(error, place);
  } finally {
    signal.removeEventListener("abort", drop);
  }
}

function prepare(place: Place, application: string, withinMs?: number): { client: pg.Client; drop: () => void } {
  const client = new pg.Client({
    host: place.run,
    port,
    user: names.owner,
    database: names.maintenance,
    application_name: application,
    ssl: false,
    password: "",
    ...(withinMs === undefined ? {} : { connectionTimeoutMillis: withinMs }),
  });
  client.on("error", () => {
    // A broken connection is reported by `end`, or by the rejection of the query in progress.
  });
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection;
  return { client, drop: () => stream.destroy() };
}

/**
 * A server that does not accept a connection within this many ms counts as one that does not run; less than the time limit for
 * bringing a server up.
 */
const acceptMs = 10_000;

/** Tries a new connection. Only the main server process accepts connections, so success proves that it runs, and not only its children. */
async function accepts(place: Place, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  const { client, drop } = prepare(place, "carillon asks", acceptMs);
  signal.addEventListener("abort", drop, { once: true });
  try {
    await client.connect();
    return true;
  } catch (error) {
    // Class 53 (insufficient resources): a server without free connections or disk space does exist.
    return /^53/.test(codeOf(error));
  } finally {
    signal.removeEventListener("abort", drop);
    drop();
  }
}

/** Temporary errors. 57P01–03: stopping, crashed, starting. 53300: all connections in use. No code: the server closed the connection. */
const passing = ["57P01", "57P02", "57P03", "53300", "ECONNRESET", "EPIPE", "EAGAIN", ""];

function attendFailure(error: unknown, place: Place): "absent" | "busy" {
  const code = codeOf(error);
  if (code === "ENOENT" || code === "ECONNREFUSED") return "absent";
  if (passing.includes(code)) return "busy";
  // 53100 (disk full) can occur here, because a new connection also writes a little, such as its caches.
  if (code === "53100") throw serverFailure("the server refused a connection", messageOf(error), place.log);
  if (code === "EACCES" || code === "EPERM") {
    throw new CarillonError(
      "STORE_REFUSED",
      `The embedded store in ${place.home} belongs to another user: ${messageOf(error)}`,
      {
        hint: "Run as the user that started it or as root, or give another folder by the option `directory`.",
        cause: error,
      },
    );
  }
  throw new CarillonError("EMBEDDED_FAILED", `The embedded server refused a connection: ${messageOf(error)}`, {
    hint: `Its log is ${place.log}.`,
    cause: error,
  });
}

async function complement(client: pg.Client): Promise<void> {
  const { rows } = await client.query("select 1 from pg_roles where rolname = $1", [names.user]);
  if (rows.length === 0) await client.query(`create role ${names.user} login`);
  await client.query(`create database ${names.database} owner ${names.user}`);
}

/**
 * Stops the server if this process is its last user. Releases the shared lock before requesting the exclusive one: if two leaving processes
 * requested it while both held the shared lock, each would find the other, and the server would stay running. The server is stopped under
 * the start lock, as it is started, so that no process starts a server while another one still writes. The holder of the start lock may be
 * waiting for the advisory lock, which is therefore released before waiting for the start lock, and requested again.
 */
async function leave(client: pg.Client, place: Place, log: (line: string) => void): Promise<void> {
  await client.query(`select pg_advisory_unlock_shared(${lock})`);
  await client.query(`set lock_timeout = ${leaveWaitMs}`);
  if (!(await isLast(client))) return;
  await client.query(`select pg_advisory_unlock(${lock})`);
  const release = await holdStartLock(place.run, AbortSignal.timeout(startLockMs));
  try {
    if (!(await isLast(client))) return;
    const { postmaster } = await serverProcesses(place.data);
    const { rows } = await client.query("select pg_read_file('postmaster.pid') as text");
    const told = Number.parseInt((rows[0] as { text: string }).text, 10);
    if (postmaster !== undefined && postmaster === told) await stop(place, postmaster, log);
    else log(`left the server running: it belongs to another container (process ${told} there)`);
  } finally {
    await release();
  }
}

async function isLast(client: pg.Client): Promise<boolean> {
  try {
    await client.query(`select pg_advisory_lock(${lock})`);
    return true;
  } catch (error) {
    if (codeOf(error) === "55P03") return false;
    throw error;
  }
}
