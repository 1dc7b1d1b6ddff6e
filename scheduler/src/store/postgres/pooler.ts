import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { Clock } from "../../base/clock.ts";

/**
 * How the store's connections reach PostgreSQL. "none": directly. "session": through a pooler that gives each client one server connection.
 * "transaction": through a pooler that may use another server connection for each transaction, so prepared statements, LISTEN and session
 * settings do not work. A pooler is assumed to be in this mode until it is proven to be in session mode.
 */
export type Pooling = "none" | "session" | "transaction";

/** How long the proof of session mode waits for its notification, in ms. */
const proofMs = 500;

/**
 * Detects a pooler between this client and the server. A pooler forwards cancel requests itself, so it gives its clients process ids that
 * differ from the server's.
 * @param settings a SQL expression that is evaluated if there is no pooler. Settings are not made by the startup packet's `options`,
 * because a pooler would refuse the connection
 * @returns false if there is no pooler; otherwise `compiles` is true if the server's JIT compiler is on for this role
 */
export async function isPooled(client: pg.ClientBase, settings = "null"): Promise<false | { compiles: boolean }> {
  const { processID } = client as unknown as { processID?: number | null };
  // Some servers give their clients no process ids.
  const direct = processID === undefined || processID === null ? "true" : `pg_backend_pid() = ${processID}`;
  const { rows } = await client.query(
    `select ${direct} as direct, current_setting('jit', true) = 'on' as compiles, case when ${direct} then ${settings} end`,
  );
  return rows[0]?.direct === false && { compiles: rows[0].compiles === true };
}

/**
 * Proves that the pooler is in session mode: an idle client receives a notification from another client only if the pooler leaves it the
 * same connection to the server. In transaction mode, this test leaves one of the pooler's connections listening on a channel that is never
 * used again.
 * @param client a client that is connected through the pooler and idle
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

/** SQL that turns JIT off in the present transaction. Through a pooler no setting lasts longer than a transaction. */
export const uncompiledSql = "; set local jit = off";

/**
 * Runs one statement in a transaction in which PostgreSQL's JIT compiler is off. On tables without statistics the server overestimates the
 * cost of a heartbeat or a claim, and compiles it at each call for up to seconds: longer than a session's timeout.
 */
export async function uncompiled<T>(client: pg.ClientBase, asked: () => Promise<T>): Promise<T> {
  await client.query(`begin isolation level read committed${uncompiledSql}`);
  try {
    const answer = await asked();
    await client.query("commit");
    return answer;
  } catch (error) {
    // On a broken connection the rollback fails too. Its error is ignored, and the statement's own error is thrown.
    await client.query("rollback").catch(() => undefined /* the error above is the cause and is thrown */);
    throw error;
  }
}

/** Changes the client so that it prepares statements by name only while `isNamed` returns true. */
export function nameOnlyWhile(isNamed: () => boolean, client: pg.ClientBase): void {
  type Ask = (config: unknown, ...rest: unknown[]) => unknown;
  const holder = client as unknown as { query: Ask };
  const inherited = Object.getPrototypeOf(client) as { query: Ask };
  holder.query = (config, ...rest) => {
    const isNameless = typeof config === "object" && config !== null && "name" in config && !isNamed();
    return inherited.query.call(client, isNameless ? { ...config, name: "" } : config, ...rest);
  };
}
