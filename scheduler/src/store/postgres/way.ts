import { readFileSync } from "node:fs";
import pg from "pg";
import { readPrivate } from "../../access/secrets/private-file.ts";
import type { Clock } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { type Host, parseStoreUrl } from "../store-url.ts";
import { destroy } from "./connections.ts";
import { Hosts, type Looked } from "./hosts.ts";

/** A store URL, and how connections find the host in it that accepts writes. */
export interface Way {
  readonly url: string;
  /** Chooses among the hosts of the URL; undefined if the URL has only one host. */
  readonly hosts: Hosts | undefined;
  readonly Routed: (new (config?: string | pg.ClientConfig) => pg.Client) | undefined;
}

/** The time limit, in ms, for one of several hosts to report its role. */
const lookMs = 1_000;

/** Parses and checks a store URL. @throws OPTION_INVALID, FILE_INVALID, SECRET_KEY_OPEN */
export function wayTo(text: string, clock: Clock, log: Log): Way {
  const { url: given, hosts: named } = parseStoreUrl(text);
  const url = verifying(given);
  checkFiles(url);
  if (named.length === 0) return { url, hosts: undefined, Routed: undefined };
  const hosts = new Hosts(named, (host) => look(url, host, log), clock);
  return { url, hosts, Routed: routed(hosts) };
}

/** Modes of TLS that in libpq verify less than `verify-full`, or nothing. Not `disable` and `no-verify`, whose names say so. */
const weakerModes = new Set(["allow", "prefer", "require", "verify-ca"]);

/** Makes the weaker modes verify the certificate and the host name in it. With `uselibpqcompat=true` they keep libpq's meaning. */
function verifying(url: string): string {
  const [before = "", query] = url.split(/\?([\s\S]*)/);
  const parameters = new URLSearchParams(query);
  if (!weakerModes.has(parameters.get("sslmode") ?? "") || parameters.get("uselibpqcompat") === "true") return url;
  parameters.set("sslmode", "verify-full");
  return `${before}?${parameters}`;
}

/** Checks that the URL's files exist, because the driver would report a missing file like a server that cannot be reached. */
function checkFiles(url: string): void {
  const parameters = new URLSearchParams(url.split(/\?([\s\S]*)/)[1] ?? "");
  for (const name of ["sslrootcert", "sslcert"]) {
    const path = parameters.get(name);
    if (path === null) continue;
    try {
      readFileSync(path);
    } catch (cause) {
      const hint = "Give the path of a PEM file. Without sslrootcert the authorities that Node.js knows count.";
      throw new CarillonError("FILE_INVALID", `${name} of the store's URL cannot be read: ${messageOf(cause)}`, {
        hint,
        cause,
      });
    }
  }
  const key = parameters.get("sslkey");
  if (key !== null)
    readPrivate({
      path: key,
      holds: "the key of the store's client certificate",
      hint: "Give the path of a PEM file as sslkey in the store's URL.",
    });
}

/** Reads the role and the timeline of one of the URL's hosts, on a separate connection. */
async function look(url: string, { host, port }: Host, log: Log): Promise<Looked> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: lookMs, query_timeout: lookMs });
  client.on("error", (error) => log.debug({ error: messageOf(error), host, port }, "a host was lost while asked"));
  Object.assign(client, { host, port });
  try {
    await client.connect();
    const { rows } = await client.query(
      `select not pg_is_in_recovery() and not current_setting('transaction_read_only')::boolean as writable`,
    );
    const writable = rows[0]?.writable === true;
    return { writable, timeline: writable ? await timelineOf(client) : null };
  } finally {
    destroy(client);
  }
}

type Connected = (error: Error | null, client?: pg.Client) => void;

/** Returns a client class that connects to the host that accepts writes. pg reads the fields `host` and `port` when it connects. */
function routed(hosts: Hosts): new (config?: string | pg.ClientConfig) => pg.Client {
  return class extends pg.Client {
    override connect(): Promise<pg.Client>;
    override connect(callback: Connected): void;
    override connect(callback?: Connected): Promise<pg.Client> | undefined {
      const connected = hosts.choose().then((host) => {
        Object.assign(this, host);
        return super.connect();
      });
      if (!callback) return connected;
      connected.then(() => callback(null, this), callback);
      return undefined;
    }
  };
}

/** Returns the server's timeline; null if the query fails, as on PostgreSQL-compatible services without these functions. */
async function timelineOf(client: pg.Client): Promise<number | null> {
  try {
    const { rows } = await client.query("select pg_walfile_name(pg_current_wal_insert_lsn()) as name");
    return Number.parseInt(String(rows[0]?.name).slice(0, 8), 16);
  } catch {
    return null; // without timelines, the first of two servers that accept writes is chosen
  }
}
