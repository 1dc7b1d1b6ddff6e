import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { Clock } from "../../base/clock.ts";

/**
 * How the store's connections reach PostgreSQL. "transaction": a pooler gives each transaction any of its server connections, so prepared
 * statements, LISTEN and session settings do not work. A pooler is assumed to be in this mode until it is proven to be in session mode.
 */
export type Pooling = "none" | "session" | "transaction";

/** How long the proof of session mode waits for its notification, ms. */
const proofMs = 500;

/**
 * Returns whether a pooler stands between this client and the server. A pooler gives its clients process ids of its own, because it
 * forwards cancel requests itself.
 * @returns false: there is no pooler. `compiles`: the server's JIT compiler is on for this role
 */
export async function isPooled(client: pg.ClientBase): Promise<false | { compiles: boolean }> {
  const { processID } = client as unknown as { processID?: number | null };
  if (processID === undefined || processID === null) return false;
  const { rows } = await client.query(
    "select pg_backend_pid() as pid, current_setting('jit', true) = 'on' as compiles",
  );
  return rows[0]?.pid === processID ? false : { compiles: rows[0]?.compiles === true };
}

/**
 * Proves session mode: an idle client receives a notification from another client only if it keeps its connection to the server. In
 * transaction mode, this leaves one connection of the pooler listening on a channel that is never used again.
 * @param client a client that came through the pooler, without other work
 * @param notify sends a notification on this channel through another connection
 */
export async function keepsConnection(
  client: pg.Client,
  notify: (channel: string) => Promise<unknown>,
  clock: Clock,
): Promise<boolean> {
  const probe = `carillon:probe:${randomUUID()}`;
  let onHeard: (heard: boolean) => void = () => undefined;
  const heard = new Promise<boolean>((resolve) => {
    onHeard = resolve;
  });
  const listener = ({ channel }: pg.Notification) => {
    if (channel === probe) onHeard(true);
  };
  client.on("notification", listener);
  await client.query(`listen "${probe}"`);
  const cancel = clock.after(proofMs, () => onHeard(false));
  try {
    await notify(probe);
    return await heard;
  } finally {
    cancel();
    client.off("notification", listener);
    await client.query(`unlisten "${probe}"`);
  }
}

/** Applies to the present transaction, because through a pooler no setting lasts longer. */
export const uncompiledSql = "; set local jit = off";

/**
 * Runs one statement in a transaction with PostgreSQL's JIT compiler off. On tables without statistics the server estimates a heartbeat or
 * a claim as costly, and compiles it at each call for up to seconds: longer than a session lasts.
 */
export async function uncompiled<T>(client: pg.ClientBase, asked: () => Promise<T>): Promise<T> {
  await client.query(`begin isolation level read committed${uncompiledSql}`);
  try {
    const answer = await asked();
    await client.query("commit");
    return answer;
  } catch (error) {
    // On a broken connection there is nothing to roll back, and the statement fails with the error of the connection.
    await client.query("rollback").catch(() => undefined /* the error above is the cause and is thrown */);
    throw error;
  }
}

/** From now on this client prepares statements by name only while `isNamed` returns true. */
export function nameOnlyWhile(isNamed: () => boolean, client: pg.ClientBase): void {
  type Ask = (config: unknown, ...rest: unknown[]) => unknown;
  const holder = client as unknown as { query: Ask };
  const inherited = Object.getPrototypeOf(client) as { query: Ask };
  holder.query = (config, ...rest) => {
    const isNameless = typeof config === "object" && config !== null && "name" in config && !isNamed();
    return inherited.query.call(client, isNameless ? { ...config, name: "" } : config, ...rest);
  };
}
