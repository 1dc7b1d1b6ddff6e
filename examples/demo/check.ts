/**
 * Computes the demo's verdict from three independent sources: the due slots and runs as the demo itself computes them, the starts that the
 * nodes wrote to a file, and the store's ledger and history.
 */
import type { RunRecord, ScheduleSpec, Store } from "carillon";
import { dueSlots } from "./due.ts";
import type { Seen } from "./record.ts";

export interface Request {
  kind: "delayed" | "by hand";
  task: string;
  run: number;
  dueMs: number;
}

export interface Kill {
  node: string;
  atMs: number;
  /** The number of runs that the store still assigned to the killed process after its death. `underWay` of them had started. */
  claimed: number;
  underWay: number;
}

export interface Evidence {
  fromMs: number;
  toMs: number;
  scheduled: { name: string; schedule: ScheduleSpec }[];
  requests: Request[];
  seen: Seen[];
  kill: Kill | undefined;
  /** True if Ctrl-C ended the demo. Runs that the killed process had claimed may then not have run again yet. */
  interrupted: boolean;
}

interface Due {
  kind: "slot" | Request["kind"];
  task: string;
  dueMs: number;
  key: string;
}

export interface Row {
  due: number;
  fired: number;
  skipped: number;
  missed: number;
  lost: number;
  doubled: number;
}

export interface Verdict {
  slots: Row;
  delayed: Row;
  byHand: Row;
  /** Number of runs that the killed process had claimed and that had not run again when Ctrl-C ended the demo. */
  pending: number;
  /**
   * Lateness in ms of all first starts, except runs that the killed process had claimed and that first started elsewhere after the kill.
   */
  latenessMs: number[];
  early: number;
  retried: number;
  rerun: { count: number; startedBefore: number; lastAfterKillMs: number; latenessMs: number[] };
  /** Descriptions of contradictions between the sources. */
  differences: string[];
  ledgerSlots: number;
  historyRuns: number;
}

/**
 * A worker claims a run at most this many ms before it is due, so at its kill the process had claimed only runs due within this
 * time.
 */
const claimAheadMs = 1_000;
const slackMs = 100;
/**
 * A start counts as early if it is more than this many ms before its due time, because a node only estimates the store's clock.
 */
const earlyMs = 5;
const all = 1_000_000_000;

const slotKey = (task: string, slotMs: number) => `${task} ${slotMs}`;
const keyOf = ({ task, slot, run }: Seen) => (slot === null ? `run ${run}` : slotKey(task, slot));

export async function judge(evidence: Evidence, store: Store): Promise<Verdict> {
  const { fromMs, toMs, scheduled, requests, seen, kill, interrupted } = evidence;
  const due: Due[] = requests
    .filter(({ dueMs }) => dueMs < toMs)
    .map(({ kind, task, run, dueMs }) => ({ kind, task, dueMs, key: `run ${run}` }));
  for (const { name, schedule } of scheduled) {
    for (const slotMs of dueSlots(schedule, fromMs, toMs))
      due.push({ kind: "slot", task: name, dueMs: slotMs, key: slotKey(name, slotMs) });
  }
  const starts = groupBy(
    seen.filter(({ kind }) => kind === "start"),
    keyOf,
  );
  const failed = new Set(seen.filter(({ kind }) => kind === "failed").map((end) => `${keyOf(end)} ${end.attempt}`));
  const ledger = await readLedger(store, scheduled, fromMs, toMs);
  const history = groupBy(await store.runs.list({ sinceMs: fromMs - 60_000, limit: all }), (record) =>
    record.slotMs === null ? `run ${record.runId}` : slotKey(record.task, record.slotMs),
  );

  const row = (): Row => ({ due: 0, fired: 0, skipped: 0, missed: 0, lost: 0, doubled: 0 });
  const rows = { slot: row(), delayed: row(), "by hand": row() };
  const verdict: Verdict = {
    slots: rows.slot,
    delayed: rows.delayed,
    byHand: rows["by hand"],
    pending: 0,
    latenessMs: [],
    early: 0,
    retried: 0,
    rerun: { count: 0, startedBefore: 0, lastAfterKillMs: 0, latenessMs: [] },
    differences: [],
    ledgerSlots: ledger.size,
    historyRuns: 0,
  };

  for (const { kind, key, dueMs } of due) {
    const into = rows[kind];
    const records = history.get(key) ?? [];
    const began = (starts.get(key) ?? []).sort((a, b) => a.at - b.at || a.attempt - b.attempt);
    const entry = kind === "slot" ? ledger.get(key) : "run";
    const lostClaim =
      kill !== undefined && dueMs <= kill.atMs + claimAheadMs + slackMs && (await wasClaimedBy(store, records, kill));
    const ended = records.some(({ state }) => state === "succeeded");
    into.due++;
    verdict.historyRuns += records.length;

    if (entry === undefined) verdict.differences.push(`${key} was due, and the ledger has nothing of it`);
    if (entry === "skipped" || entry === "missed") into[entry]++;
    else if (interrupted && !ended && lostClaim) verdict.pending++;
    else if (began.length === 0 || !ended) into.lost++;
    else into.fired++;
    if (entry !== "run" && began.length > 0)
      verdict.differences.push(`${key} was started, and the ledger calls it ${entry}`);
    if (ended && began.length === 0)
      verdict.differences.push(`${key} succeeded by the history, and nobody saw it start`);

    if (
      records.length > 1 ||
      !began.every((start, i) => i === 0 || explained(began[i - 1] as Seen, start, failed, kill))
    )
      into.doubled++;
    verdict.retried += began.filter((start) => failed.has(`${key} ${start.attempt}`)).length;

    const first = began[0];
    if (first === undefined) continue;
    const late = first.at - dueMs;
    const after = lostClaim && kill ? began.find(({ at }) => at > kill.atMs) : undefined;
    if (after !== undefined && kill) {
      verdict.rerun.count++;
      if (first !== after) verdict.rerun.startedBefore++;
      else verdict.rerun.latenessMs.push(late);
      verdict.rerun.lastAfterKillMs = Math.max(verdict.rerun.lastAfterKillMs, after.at - kill.atMs);
    }
    if (first !== after) verdict.latenessMs.push(late);
    if (late < -earlyMs) verdict.early++;
  }

  const known = new Set(due.map(({ key }) => key));
  for (const key of ledger.keys())
    if (!known.has(key)) verdict.differences.push(`${key} is in the ledger, and was not due`);
  verdict.latenessMs.sort((a, b) => a - b);
  verdict.rerun.latenessMs.sort((a, b) => a - b);
  return verdict;
}

function groupBy<Item>(items: Item[], keyOfItem: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOfItem(item));
    if (group) group.push(item);
    else groups.set(keyOfItem(item), [item]);
  }
  return groups;
}

/**
 * Returns true if a second start is legitimate: it has a higher attempt and, if both fences are known, a higher fence, and
 * follows a recorded failure or the kill of the process that had made the first start.
 */
function explained(before: Seen, start: Seen, failed: Set<string>, kill: Kill | undefined): boolean {
  if (start.attempt <= before.attempt) return false;
  if (start.fence !== null && before.fence !== null && start.fence <= before.fence) return false;
  return failed.has(`${keyOf(before)} ${before.attempt}`) || (kill?.node === before.node && start.at > kill.atMs);
}

async function wasClaimedBy(store: Store, records: RunRecord[], { node }: Kill): Promise<boolean> {
  for (const { runId, attempt, state, node: holder } of records) {
    if (state === "claimed" && holder === node) return true;
    if (attempt < 2 && state !== "ready") continue;
    if ((await store.runs.attempts(runId)).some((one) => one.outcome === "lost" && one.node === node)) return true;
  }
  return false;
}

type Entry = "run" | "skipped" | "missed";

/** Returns the ledger's outcome of each slot in [fromMs, toMs); a range of missed slots yields one entry for each slot. */
async function readLedger(
  store: Store,
  scheduled: Evidence["scheduled"],
  fromMs: number,
  toMs: number,
): Promise<Map<string, Entry>> {
  const ledger = new Map<string, Entry>();
  for (const { name, schedule } of scheduled) {
    const { taskId } = await store.tasks.byName(name);
    const { slots, ranges } = await store.history.slots(taskId, fromMs, toMs - 1, all);
    for (const { slotMs, outcome } of slots) ledger.set(slotKey(name, slotMs), outcome);
    for (const range of ranges) {
      const [first, end] = [Math.max(range.fromMs, fromMs), Math.min(range.toMs + 1, toMs)];
      for (const slotMs of dueSlots(schedule, first, end)) {
        const key = slotKey(name, slotMs);
        if (!ledger.has(key)) ledger.set(key, range.outcome);
      }
    }
  }
  return ledger;
}
