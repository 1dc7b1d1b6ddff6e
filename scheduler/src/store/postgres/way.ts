import pg from "pg";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { type Host, parseStoreUrl } from "../store-url.ts";
import { destroy } from "./connections.ts";
import { Hosts, type Looked } from "./hosts.ts";

/** A URL, and how connections come to the host of it that accepts writes. */
export interface Way {
  readonly url: string;
  /** undefined: the URL names one host. */
  readonly hosts: Hosts | undefined;
  readonly Routed: (new (config?: string | pg.ClientConfig) => pg.Client) | undefined;
}

/** How long one of several hosts may take to say what it is. */
const lookMs = 1_000;

/** @throws OPTION_INVALID */
export function wayTo(text: string, clock: Clock, log: Log): Way {
  const { url, hosts: named } = parseStoreUrl(text);
  if (named.length === 0) return { url, hosts: undefined, Routed: undefined };
  const hosts = new Hosts(named, (host) => look(url, host, log), clock);
  return { url, hosts, Routed: routed(hosts) };
}

/** What a server that the URL names is: asked on a connection of its own. */
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

/** A client that connects to whichever host accepts writes. pg reads both fields when it connects. */
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

/** Not every service that speaks PostgreSQL's protocol has these functions: then it is not known. */
async function timelineOf(client: pg.Client): Promise<number | null> {
  try {
    const { rows } = await client.query("select pg_walfile_name(pg_current_wal_insert_lsn()) as name");
    return Number.parseInt(String(rows[0]?.name).slice(0, 8), 16);
  } catch {
    return null; // two servers that accept writes are then told apart by which answered first
  }
}
