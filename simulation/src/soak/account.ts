/** Checks the operations, the handlers' notes and the store's final state against the invariants. */
import pg from "pg";
import { acknowledged } from "../check/acknowledged.ts";
import { attempts } from "../check/attempts.ts";
import { audited } from "../check/audited.ts";
import { claimedOrReclaimed } from "../check/claimed-or-reclaimed.ts";
import { counters } from "../check/counters.ts";
import { handlersTold } from "../check/handlers-told.ts";
import { limitsHeld } from "../check/limits-held.ts";
import { lostWorkers } from "../check/lost-workers.ts";
import { notEarly } from "../check/not-early.ts";
import { oneRunASlot } from "../check/one-run-a-slot.ts";
import { slotsBetween } from "../check/oracle.ts";
import { recovered } from "../check/recovered.ts";
import { slotsAccounted } from "../check/slots-accounted.ts";
import { startLag } from "../check/start-lag.ts";
import { type Checker, type Dump, dumped, type History, type Row, type Violation } from "../history.ts";

/**
 * The checkers that need no record of the executed statements, because a soak test observes the cluster only from outside, as a user
 * does. Time limits include `slackMs`, because all processes share the cores of one machine.
 */
const checkers: readonly Checker[] = [
  oneRunASlot,
  slotsAccounted,
  acknowledged,
  claimedOrReclaimed,
  lostWorkers,
  handlersTold,
  limitsHeld,
  notEarly,
  attempts,
  audited,
  counters,
  startLag,
  recovered,
];

export interface Account {
  readonly slotsDue: number;
  readonly runs: number;
  readonly missed: number;
  readonly skipped: number;
  readonly enqueued: number;
  readonly executions: number;
  readonly attemptsLost: number;
  readonly violations: Violation[];
}

/** Parses PostgreSQL's bigint and numeric values as numbers: epoch ms and counts are small enough. */
export const numbers: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text") =>
    oid === 20 || oid === 1700 ? Number : pg.types.getTypeParser(oid, format)) as pg.CustomTypesConfig["getTypeParser"],
};

export async function dumpOf(url: string, schema: string): Promise<Dump> {
  const client = new pg.Client({ connectionString: url, types: numbers });
  await client.connect();
  try {
    const dump = {} as Record<keyof Dump, Row[]>;
    // Everything is read in one snapshot, because the cluster keeps writing meanwhile.
    await client.query("begin isolation level repeatable read, read only");
    for (const [table, text] of Object.entries(dumped))
      dump[table as keyof Dump] = (await client.query(text.replaceAll("S.", `"${schema}".`))).rows;
    await client.query("commit");
    return dump;
  } finally {
    await client.end();
  }
}

export function account(history: History): Account {
  const violations: Violation[] = [];
  for (const { invariant, check } of checkers) {
    const broken = check(history);
    if (broken) violations.push({ invariant, ...broken });
  }
  const unended = endedOnce(history);
  if (unended) violations.push(unended);
  const { dump, operations } = history;
  const saved = operations.filter(({ kind, outcome }) => kind === "save" && outcome === "ok");
  const inRanges = (outcome: number) =>
    dump.slot_range
      .filter((row) => row.outcome === outcome)
      .reduce((sum, { slots }) => sum + ((slots as number | null) ?? 0), 0);
  const inLedger = (outcome: number) => dump.slot.filter((row) => row.outcome === outcome).length;
  return {
    slotsDue: saved.reduce(
      (sum, { definition, endedStoreMs }) =>
        sum + (definition ? slotsBetween(definition.schedule, endedStoreMs as number, history.endStoreMs).length : 0),
      0,
    ),
    runs: dump.run_history.length,
    missed: inRanges(3) + inLedger(3),
    skipped: inRanges(2) + inLedger(2),
    enqueued: operations.filter(({ kind, outcome }) => kind === "enqueue" && outcome === "ok").length,
    executions: history.executions.length,
    attemptsLost: dump.attempt.filter(({ outcome }) => outcome === "lost").length,
    violations,
  };
}

/** Checks that every enqueued run that was due more than 30 s before the end has ended, and that a handler returned for each success. */
function endedOnce({ operations, dump, executions, endStoreMs }: History): Violation | undefined {
  const ended = new Map(dump.run_history.map((row) => [row.id as number, row]));
  const returned = new Set(executions.filter(({ how }) => how === "returned").map(({ fence }) => fence));
  for (const { id, kind, outcome, run, dueMs = 0 } of operations) {
    if (kind !== "enqueue" || outcome !== "ok" || run === undefined || dueMs > endStoreMs - 30_000) continue;
    if (!ended.has(run)) return { invariant: "14: what was enqueued runs", what: `${id}'s run has not ended`, run };
  }
  for (const [run, { outcome, fence }] of ended)
    if (outcome === 0 && !returned.has(fence as number))
      return { invariant: "8: what succeeded was done", what: `no handler came to its end under ${fence}`, run };
  return undefined;
}
