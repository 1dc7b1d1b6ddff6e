import type pg from "pg";
import type { StartLog } from "./start-log.ts";

/** Totals over the slots of a time span. */
export interface SlotSum {
  due: number;
  /** Number of slots that lack at least one of these: an accepted run, a successful end, a start that the handler logged. */
  lost: number;
  /**
   * Number of slots that are not lost and that ended more than once, or that started more often than once plus once for each claim that was
   * lost.
   */
  doubled: number;
  /**
   * The highest lateness in ms of the slots due between the fault and `endMs` that the victim had not claimed; lost slots are left out. A
   * slot's lateness uses its latest start in the handlers' log and in the store's history.
   */
  worstMs: number;
  /** The due time of the slot with the highest lateness, in ms after the fault. */
  worstAtMs: number;
  /** The lateness in ms of each slot due between the fault and `endMs` that the victim had not claimed and that is not lost. */
  lateness: number[];
  /** The highest lateness in ms of the slots that the victim had claimed; 0 if it had claimed none. */
  claimedWorstMs: number;
  claimed: number;
  /** The highest lateness in ms of the slots due between `quietMs` and the fault. */
  beforeWorstMs: number;
  faults: string[];
}

export interface SlotSpan {
  /** Start of the span, in epoch ms (inclusive); `toMs` is its end (exclusive). Every task has a slot at each whole second. */
  fromMs: number;
  toMs: number;
  /**
   * The time of the fault, in epoch ms. Among the slots that the victim had not claimed, those due before `faultMs` count only for
   * `beforeWorstMs`, and those due before `quietMs` not even for that.
   */
  faultMs: number;
  quietMs: number;
  /** The lateness of slots due at or after this time (epoch ms) is ignored, unless the victim had claimed them; default: `toMs`. */
  endMs?: number;
  claimed: ReadonlySet<string>;
}

/**
 * Compares every slot of the span with the handlers' log, the store's slot ledger and its run history. The caller waits until all runs of
 * the span have ended.
 */
export async function sumSlots(
  client: pg.Client,
  schema: string,
  tasks: readonly { name: string }[],
  log: StartLog,
  { fromMs, toMs, faultMs, quietMs, endMs = toMs, claimed }: SlotSpan,
): Promise<SlotSum> {
  const s = `"${schema}"`;
  const span = [fromMs, toMs - 1];
  const places = new Map(tasks.map(({ name }, place) => [name, place]));
  const keyOf = ({ name, slot }: { name: string; slot: string }) => `${places.get(name)} ${slot}`;
  const ledger = await client.query(
    `select t.name, l.slot_ms::text as slot, l.outcome, coalesce(a.lost, 0) as lost from ${s}.slot l join ${s}.task t on t.id = l.task_id
     left join (select run_id, count(*)::int as lost from ${s}.attempt where outcome = 'lost' group by run_id) a on a.run_id = l.run_id
     where l.slot_ms between $1 and $2`,
    span,
  );
  const history = await client.query(
    `select t.name, h.slot_ms::text as slot, h.outcome, h.started_ms::float8 as started from ${s}.run_history h
     join ${s}.task t on t.id = h.task_id where h.slot_ms between $1 and $2`,
    span,
  );
  const accepted = new Map(
    ledger.rows.map((row) => [keyOf(row), { run: row.outcome === 1, lost: row.lost as number }]),
  );
  const ended = new Map<string, { succeeded: boolean; started: number }[]>();
  for (const row of history.rows) {
    const ends = ended.get(keyOf(row)) ?? [];
    ends.push({ succeeded: row.outcome === 0, started: row.started });
    ended.set(keyOf(row), ends);
  }
  log.read();
  const sum: SlotSum = {
    due: 0,
    lost: 0,
    doubled: 0,
    worstMs: 0,
    worstAtMs: Number.NaN,
    lateness: [],
    claimedWorstMs: 0,
    claimed: 0,
    beforeWorstMs: 0,
    faults: [],
  };
  for (let slotMs = fromMs; slotMs < toMs; slotMs += 1_000) {
    for (let task = 0; task < tasks.length; task++) {
      const key = `${task} ${slotMs}`;
      const [starts, ends, entry] = [log.starts.get(key) ?? [], ended.get(key) ?? [], accepted.get(key)];
      sum.due++;
      const told = () =>
        `${tasks[task]?.name} ${new Date(slotMs).toISOString()}: ${starts.length} starts, ledger ${entry ? (entry.run ? "run" : "not run") : "empty"}, ${ends.length} ends, ${entry?.lost ?? 0} claims lost`;
      if (!entry?.run || !ends[0]?.succeeded || starts.length === 0) {
        sum.lost++;
        sum.faults.push(`lost: ${told()}`);
        continue;
      }
      if (ends.length > 1 || starts.length > 1 + entry.lost) {
        sum.doubled++;
        sum.faults.push(`doubled: ${told()}`);
      }
      const latest = Math.max(ends[0].started, ...starts.map(({ atMs }) => atMs)) - slotMs;
      if (claimed.has(key)) {
        sum.claimed++;
        sum.claimedWorstMs = Math.max(sum.claimedWorstMs, latest);
      } else if (slotMs < quietMs || slotMs >= endMs) continue;
      else if (slotMs < faultMs) sum.beforeWorstMs = Math.max(sum.beforeWorstMs, latest);
      else {
        if (latest > sum.worstMs) [sum.worstMs, sum.worstAtMs] = [latest, slotMs - faultMs];
        sum.lateness.push(latest);
      }
    }
  }
  if (accepted.size > sum.due) sum.faults.push(`invented: ${accepted.size - sum.due} slots that no schedule has`);
  return sum;
}
