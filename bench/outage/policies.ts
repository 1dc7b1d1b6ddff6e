import type pg from "pg";
import type { StartLog } from "../cluster/start-log.ts";

export interface PolicySpan {
  fromMs: number;
  toMs: number;
  downMs: number;
  upMs: number;
}

export interface PolicySum {
  due: number;
  /** Number of slots due during the outage that had been planned before it and ran. */
  plannedBefore: number;
  /** Number of slots that were planned before the outage and recorded as missed afterwards, because they were too late. */
  givenUp: number;
  /** Number of late slots that were planned and run after the outage. */
  caughtUp: number;
  /** Number of slots in ranges that are recorded as missed. */
  missed: number;
  lost: number;
  doubled: number;
  /** Number of slots that started during the outage, apart from those that could have been claimed ahead. */
  invented: number;
  faults: string[];
}

/** The misfire setting of every task, in ms: the misfire policy applies to slots that are later than this. */
const afterMs = 10_000;
/** The policy `all` runs at most this number of late slots, the newest. */
const cap = 100;
/** A run may start this many ms after the misfire limit, because its lateness is checked when it is claimed, not when it starts. */
const startMs = 2_000;
/** Workers claim runs a second ahead, so starts up to this many ms after the beginning of the outage are allowed. */
const claimedAheadMs = 1_500;

interface Booked {
  acceptedMs: number;
  run: boolean;
  givenUp: boolean;
  lost: number;
  ends: number;
}

/**
 * Counts the outcomes of the slots of one policy's tasks before, during and after an outage of the store. Each slot must be a
 * run, or be recorded once as missed (alone or in a range), as the policy says.
 * @param tasks their names, and their indices in the list that the handlers' log uses
 */
export async function sumPolicy(
  { client, schema, log }: { client: pg.Client; schema: string; log: StartLog },
  policy: "fire_once" | "skip" | "all",
  tasks: readonly { place: number; name: string }[],
  { fromMs, toMs, downMs, upMs }: PolicySpan,
): Promise<PolicySum> {
  const s = `"${schema}"`;
  const names = tasks.map(({ name }) => name);
  const { rows: booked } = await client.query(
    `select t.name, l.slot_ms::float8 as slot, l.accepted_ms::float8 as accepted, l.outcome, l.reason,
            (select count(*)::int from ${s}.attempt a where a.run_id = l.run_id and a.outcome = 'lost') as lost,
            (select count(*)::int from ${s}.run_history h where h.id = l.run_id and h.outcome = 0) as ends
     from ${s}.slot l join ${s}.task t on t.id = l.task_id where l.slot_ms >= $1 and l.slot_ms < $2 and t.name = any($3)`,
    [fromMs, toMs, names],
  );
  const { rows: ranges } = await client.query(
    `select t.name, r.from_ms::float8 as from, r.to_ms::float8 as to, r.outcome, r.reason from ${s}.slot_range r
     join ${s}.task t on t.id = r.task_id where t.name = any($1)`,
    [names],
  );
  log.read();
  const sum: PolicySum = {
    due: 0,
    plannedBefore: 0,
    givenUp: 0,
    caughtUp: 0,
    missed: 0,
    lost: 0,
    doubled: 0,
    invented: 0,
    faults: [],
  };
  for (const { place, name } of tasks) {
    const book = new Map<number, Booked>(
      booked
        .filter((row) => row.name === name)
        .map((row) => [
          row.slot,
          {
            acceptedMs: row.accepted,
            run: row.outcome === 1,
            givenUp: row.outcome === 3 && row.reason === `misfire: ${policy}`,
            lost: row.lost,
            ends: row.ends,
          },
        ]),
    );
    const mine = ranges.filter((row) => row.name === name);
    const late: number[] = [];
    let open = 0;
    for (let slotMs = fromMs; slotMs < toMs; slotMs += 1_000) {
      const entry = book.get(slotMs);
      book.delete(slotMs);
      const within = mine.filter((row) => row.from <= slotMs && slotMs <= row.to);
      const starts = log.starts.get(`${place} ${slotMs}`) ?? [];
      const told = `${name} ${new Date(slotMs).toISOString()}: ${starts.length} starts, ${entry ? `ledger ${entry.run ? "run" : "not run"}, ${entry.ends} ends` : "no ledger entry"}, ${within.length} ranges`;
      sum.due++;
      if (starts.some(({ atMs }) => atMs > downMs + claimedAheadMs && atMs < upMs)) sum.invented++;
      if ((entry ? 1 : 0) + within.length > 1 || (entry?.ends ?? 0) > 1 || starts.length > 1 + (entry?.lost ?? 0)) {
        sum.doubled++;
        sum.faults.push(`doubled: ${told}`);
      } else if (entry?.run && entry.ends === 1 && starts.length > 0) {
        const caught = entry.acceptedMs > upMs && slotMs <= entry.acceptedMs;
        if (caught) {
          late.push(entry.acceptedMs - slotMs);
          open++;
        } else if (slotMs > downMs && slotMs < upMs) sum.plannedBefore++;
        const startedMs = Math.min(...starts.map(({ atMs }) => atMs));
        if (policy !== "all" && entry.lost === 0 && startedMs - slotMs > afterMs + startMs)
          sum.faults.push(`started too late: ${told}`);
      } else if (entry?.givenUp && policy !== "all" && starts.length === 0) {
        sum.givenUp++;
      } else if (within[0]?.outcome === 3 && String(within[0].reason).includes(policy) && starts.length === 0) {
        sum.missed++;
        open++;
      } else {
        sum.lost++;
        sum.faults.push(`lost: ${told}`);
      }
    }
    sum.caughtUp += late.length;
    if (book.size > 0) sum.faults.push(`${name} has ${book.size} slots that its schedule has not`);
    const expected = { fire_once: 1, all: Math.min(cap, open), skip: late.filter((ms) => ms <= afterMs).length }[
      policy
    ];
    if (late.length !== expected)
      sum.faults.push(
        `${name}: of ${open} slots that were late ${late.length} ran, by ${policy} it should be ${expected}`,
      );
  }
  if (sum.invented > 0) sum.faults.push(`${sum.invented} slots started while the store was away`);
  return sum;
}
