import type { Settlement, SqlClient } from "../store.ts";
import type { Ended } from "./claims.ts";
import type { Database } from "./database.ts";
import { settleGates } from "./gates.ts";
import { type Query, queryIn, queryOf } from "./query.ts";
import { bookTokens } from "./retry-tokens.ts";
import { takeUpLeft } from "./set-aside.ts";
import { retrySql } from "./settle.ts";

interface Retried {
  fence: number;
  /** For its task is paused, as the statement saw it. */
  aside: boolean;
}

/** Of those whose end takes the longer way. */
export const tasksOf = (items: Settlement[]): number[] => [
  ...new Set(items.filter(({ linked }) => linked).map(({ taskId }) => taskId)),
];

/** How claimed runs go back for another try. */
export function retries(database: Database) {
  const s = database.schema;
  return { retry, retryIn };

  /** @returns the fences of those that are to be tried again */
  async function retry(settlements: Settlement[], nowMs: number): Promise<Set<number>> {
    const wanted = settlements.filter(({ verdict }) => verdict.kind === "retry");
    if (wanted.length === 0) return new Set();
    const rows = await retryWith(queryOf(database), wanted, "failed", false);
    const taken = new Set(rows.map(({ fence }) => fence));
    const left = wanted.filter(({ fence }) => !taken.has(fence));
    // Of tasks whose tries take tokens; or not to be retried at all.
    if (left.length > 0) rows.push(...(await database.transaction((client) => retryBooked(client, left, "failed"))));
    const done = new Set(rows.map(({ fence }) => fence));
    const aside = new Set(rows.flatMap((row) => (row.aside ? [row.fence] : [])));
    const paused = wanted.filter(({ fence }) => aside.has(fence)).map(({ taskId }) => taskId);
    if (paused.length > 0) await takeUpLeft(database, { setAside: paused }, nowMs);
    const asked = tasksOf(wanted.filter(({ verdict }) => verdict.kind === "retry" && verdict.ask));
    // Their places are free. A crash before this is mended by the dispatcher.
    if (asked.length > 0) await database.transaction((client) => settleGates(client, s, asked, nowMs, true));
    return done;
  }

  /** In the caller's transaction. */
  async function retryIn(client: SqlClient, wanted: Settlement[], outcome: "failed" | "lost"): Promise<number[]> {
    return (await retryBooked(client, wanted, outcome)).map(({ fence }) => fence);
  }

  async function retryBooked(client: SqlClient, wanted: Settlement[], outcome: "failed" | "lost"): Promise<Retried[]> {
    if (wanted.length === 0) return [];
    const done = await retryWith(queryIn(client), wanted, outcome, true);
    const fences = new Set(done.map(({ fence }) => fence));
    await bookTokens(
      client,
      s,
      wanted.flatMap(({ runId, fence }) => (fences.has(fence) ? [runId] : [])),
    );
    return done;
  }

  async function retryWith(
    query: Query,
    wanted: Settlement[],
    outcome: "failed" | "lost",
    tokens: boolean,
  ): Promise<Retried[]> {
    const rows = await query<Retried>("settle-retry", retrySql(s), [
      wanted.map(({ runId }) => runId),
      wanted.map(({ fence }) => fence),
      wanted.map(({ verdict }) => (verdict.kind === "retry" ? Math.round(verdict.dueMs) : 0)),
      wanted.map(({ startedMs }) => (startedMs === null ? null : Math.round(startedMs))),
      wanted.map(({ endedMs }) => Math.round(endedMs)),
      wanted.map(({ verdict }) => (verdict.kind === "retry" ? verdict.error : null)),
      outcome,
      wanted.map(({ verdict }) => verdict.kind === "retry" && verdict.ask === true),
      tokens,
    ]);
    return rows.map(({ fence, aside }) => ({ fence: Number(fence), aside }));
  }
}

/** What a verdict ends; a retry that was not taken ends the run too. */
export function asEnded(item: Settlement, retried: Set<number>): Ended[] {
  if (item.verdict.kind === "ended") return [item as Ended];
  if (item.verdict.kind === "released" || retried.has(item.fence)) return [];
  // Matches only what `retry` passed over: a run whose cancellation was asked for, or whose task was removed.
  return [{ ...item, verdict: { kind: "ended", outcome: "cancelled", result: null, error: item.verdict.error } }];
}

/** Of many verdicts. */
export function allEnded(items: readonly Settlement[], retried: Set<number>): Ended[] {
  if (items.every(({ verdict }) => verdict.kind === "ended")) return items as Ended[];
  return items.flatMap((item) => asEnded(item, retried));
}
