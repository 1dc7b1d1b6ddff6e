import type pg from "pg";
import { pause } from "../../../base/clock.ts";
import { messageOf } from "../../../base/errors.ts";
import type { Signal, SignalStore } from "../../../cluster/signal-store.ts";
import { type Database, quoteIdentifier } from "../database.ts";
import type { Pooling } from "../pooler.ts";
import { channelOf } from "./channel.ts";
import { pollMs, pollSignals } from "./polled-signals.ts";

const reconnectPauseMs = 500;

/**
 * SQL that sends a signal as a part of a larger statement. The result is cast to text, because not every library can read the type void:
 * Prisma rejects such a column.
 * @param text an SQL expression for the signal
 */
export function notifySql(schema: string, text: string): string {
  return `${schema}.tell(${text})::text`;
}

/**
 * SQL: the group number that a run gets when its claim is given up. An addressee is valid for one claim only, so an addressed run gets 0,
 * which means that it is to be addressed again.
 */
export const unaddressed = "case when r.group_id < 0 then 0 else r.group_id end";

/**
 * SQL: sends at most two signals about runs that became ready, each with the earliest due time: `direct` to the router about runs
 * that it must first assign to a worker (group 0), and `ready` to the workers about all other runs, which they can claim at once.
 * @param rows a FROM item with the columns due_ms and group_id
 */
export const notifyReadySql = (schema: string, rows: string) => `
  select count(${notifySql(schema, "case when direct then 'direct ' else 'ready ' end || due")}) as signals
  from (select group_id = 0 as direct, min(due_ms) as due from ${rows} group by 1) kinds`;

/**
 * Runs LISTEN on a dedicated connection for all listeners; behind a pooler in transaction mode it polls on that connection instead.
 * Listeners receive a `resync` first, after each new connection, because signals were missed before it. A listener that is added to a
 * connection that already receives signals also receives a `resync` first.
 */
export function signalStore(database: Database): SignalStore {
  const channel = quoteIdentifier(channelOf(database.schema).replaceAll("''", "'"));
  const listeners = new Set<(signal: Signal) => void>();
  let told: Pooling | undefined;
  let connection: { end: AbortController; ended: Promise<void>; heard: boolean } | undefined;
  return {
    async listen(listener, signal) {
      if (signal.aborted) return;
      // The listener is wrapped in a new function each time, so that a listener that is added twice is called twice.
      const told = (heard: Signal) => listener(heard);
      listeners.add(told);
      connection ??= begin();
      const its = connection;
      if (its.heard) told({ kind: "resync" });
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      listeners.delete(told);
      if (listeners.size > 0 || connection !== its) return;
      connection = undefined;
      its.end.abort();
      await its.ended;
    },
  };

  function begin(): NonNullable<typeof connection> {
    const end = new AbortController();
    const its = { end, ended: Promise.resolve(), heard: false };
    const tell = (signal: Signal) => {
      if (signal.kind === "resync") its.heard = true;
      if (!end.signal.aborted) for (const listener of [...listeners]) listener(signal);
    };
    its.ended = keepListening(tell, end.signal, () => {
      its.heard = false;
    });
    return its;
  }

  async function keepListening(tell: (signal: Signal) => void, signal: AbortSignal, deaf: () => void): Promise<void> {
    while (!signal.aborted) {
      try {
        await listenOnce(tell, signal);
      } catch (error) {
        // The pool's own queries log the outage. Without signals, processes only react more slowly until the connection is back.
        database.log.debug({ error: messageOf(error) }, "signals are not heard; connecting again");
      }
      deaf();
      await pause(database.clock, reconnectPauseMs, signal);
    }
  }

  async function listenOnce(listener: (signal: Signal) => void, signal: AbortSignal): Promise<void> {
    const client = await database.connectListener();
    const stop = () => void client.end();
    signal.addEventListener("abort", stop, { once: true });
    try {
      const pooling = await database.poolingOf(client);
      if (pooling === "session" && !database.listensElsewhere) database.inSessionMode();
      say(pooling);
      const hear = (payload: string) => {
        const heard = parse(payload);
        if (heard) listener(heard);
      };
      const resync = () => listener({ kind: "resync" });
      if (pooling === "transaction") await pollSignals({ database, client, hear, resync, signal });
      else await hearNotifications(client, hear, resync, signal);
    } finally {
      signal.removeEventListener("abort", stop);
      await client.end();
    }
  }

  async function hearNotifications(
    client: pg.Client,
    hear: (payload: string) => void,
    resync: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      client.on("end", resolve);
      client.on("error", reject);
      client.on("notification", ({ payload }) => hear(payload ?? ""));
      client.query(`listen ${channel}`).then(resync, reject);
      if (signal.aborted) resolve();
    });
  }

  function say(pooling: Pooling): void {
    if (pooling === told) return;
    told = pooling;
    const where = database.listensElsewhere ? "at listenUrl" : "through the pooler, which is in session mode";
    if (pooling !== "transaction") {
      if (database.listensElsewhere || pooling === "session") database.log.info({}, `signals come by LISTEN ${where}`);
      return;
    }
    const fields = { everyMs: pollMs };
    if (database.listensElsewhere)
      database.log.warn(fields, "listenUrl leads to a pooler in transaction mode: signals are polled instead");
    else
      database.log.info(
        fields,
        "the store is behind a pooler in transaction mode: signals are polled; a direct listenUrl brings them at once",
      );
  }
}

function parse(payload: string): Signal | null {
  const [kind, ...given] = payload.split(" ");
  const [first, second] = given.map(Number);
  if (kind === "held" || kind === "direct") return { kind, dueMs: Number(first) };
  if (kind === "directed") return { kind, sessionId: Number(first), dueMs: Number(second) };
  if (kind === "ready") return { kind, dueMs: Number(first) };
  if (kind === "failing") return { kind, taskId: Number(first) };
  if (kind === "ended") return { kind, runIds: given.map(Number) };
  if (kind === "child") return { kind, parentId: Number(first) };
  if (kind === "beat") return { kind, sessionId: Number(first), beat: Number(second) };
  if (kind === "prompt") return { kind, sessionId: Number(first) };
  if (kind === "revoked") return { kind, keyId: Number(first) };
  if (kind === "lock") return { kind, token: given[0] ?? "" };
  // Ignores kinds of signals that only newer versions send.
  return kind === "recall" || kind === "tasks" || kind === "plans" || kind === "leadership" || kind === "operations"
    ? { kind }
    : null;
}
