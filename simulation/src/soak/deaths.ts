/** Which processes were taken for dead, and whether a fault explains it. */
import pg from "pg";
import type { Happening, Violation } from "../history.ts";
import { numbers } from "./account.ts";

/** A session that another process ended because its owner was silent. */
export interface Death {
  readonly node: string;
  /** True for a worker over HTTP, for which a server sends the heartbeats. */
  readonly remote: boolean;
  readonly endedMs: number;
  readonly why: string;
}

/** A death counts as a consequence of a fault until two session timeouts and this many ms after the fault's end. */
const afterMs = 2_000;

/** Reads the deaths. Sessions of processes that left in order are not among them. */
export async function deathsOf(url: string, schema: string): Promise<Death[]> {
  const client = new pg.Client({ connectionString: url, types: numbers });
  await client.connect();
  try {
    const { rows } = await client.query<Death>(
      `select node, key_id is not null as remote, ended_ms as "endedMs", ended_why as why from "${schema}".session
       where ended_why like 'silent %' or ended_why like 'not shown %' order by ended_ms`,
    );
    return rows;
  } finally {
    await client.end();
  }
}

/**
 * Returns a violation for each death without a cause. A cause is that the process was killed, stood still or was without the store shortly
 * before. For a worker over HTTP, another process that stood still is a cause too: without claims, the worker's poll waits at a server for
 * longer than its session lasts.
 */
export function withoutCause(
  deaths: readonly Death[],
  happenings: readonly Happening[],
  timeoutMs: number,
): Violation[] {
  return deaths
    .filter(
      ({ node, remote, endedMs }) =>
        !happenings.some(({ atMs, what }) => {
          const cause = causeOf(remote && what.includes(" stands still ") ? what.split(" ", 1)[0] : node, what);
          return cause !== undefined && atMs <= endedMs && endedMs <= atMs + cause + 2 * timeoutMs + afterMs;
        }),
    )
    .map(({ node, endedMs, why }) => ({
      invariant: "12: no live process is taken for dead",
      what: `${node} was taken for dead (${why}), and no fault had disturbed it`,
      atMs: endedMs,
    }));
}

/** Returns how long (ms) a happening disturbed the node; undefined if it does not concern the node. */
function causeOf(node: string | undefined, what: string): number | undefined {
  if (!what.startsWith(`${node} `)) return undefined;
  const [, lasting] = /(?:stands still|from the store|by the store|without a store) for (\d+) ms/.exec(what) ?? [];
  if (lasting !== undefined) return Number(lasting);
  return what.endsWith("is killed") ? 0 : undefined;
}
