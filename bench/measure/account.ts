import type pg from "pg";
import type { Start } from "./starts.ts";

/** A slot that was due, as the measuring process computes it. */
export interface DueSlot {
  task: number;
  slotMs: number;
}

export interface Account {
  slots_due: number;
  /** Number of slots that started once and succeeded once according to the handlers' records, the ledger and the history. */
  fired: number;
  /**
   * Number of slots that the ledger records as skipped and that no handler started; `missed`: the same for slots recorded as
   * missed.
   */
  skipped: number;
  missed: number;
  /** Number of slots that are neither fired, skipped, missed nor doubled. */
  lost: number;
  /** Number of slots that started or ended more than once. */
  doubled: number;
  /** Lateness of each fired slot, in ms. */
  lateness: number[];
  /** Descriptions of the faults found; empty if the handlers' records, the ledger, the history and the counters agree. */
  faults: string[];
}

interface Book {
  /** The ledger's outcome of each slot: "run", "skipped" or "missed". */
  ledger: Map<string, string>;
  /** The outcomes of the ended runs of each slot. */
  ended: Map<string, string[]>;
  ranges: { task: number; fromMs: number; toMs: number; outcome: string }[];
  live: number;
  counted: Record<string, number>;
  recorded: Record<string, number>;
}

const key = (task: number, slotMs: number) => `${task} ${slotMs}`;
const outcomes = ["succeeded", "failed", "cancelled"];
const slotOutcomes = ["", "run", "skipped", "missed"];

/**
 * Compares the slots that were due with three sources, which must agree on every slot: the starts that handlers recorded, the slot ledger,
 * and the history of ended runs.
 * @param tasks names of the tasks; the index is the number that `due` and `starts` use
 * @param schema the store's schema; it is read when the process under test has ended
 */
export async function account(
  client: pg.Client,
  schema: string,
  tasks: string[],
  due: DueSlot[],
  starts: Start[],
): Promise<Account> {
  const slots = due.map(({ slotMs }) => slotMs);
  const fromMs = slots.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const toMs = slots.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const book = await readBook(client, schema, tasks, fromMs, toMs);
  const startsOf = new Map<string, Start[]>();
  for (const start of starts) {
    const list = startsOf.get(key(start.task, start.slotMs));
    if (list) list.push(start);
    else startsOf.set(key(start.task, start.slotMs), [start]);
  }
  const sum: Account = {
    slots_due: due.length,
    fired: 0,
    skipped: 0,
    missed: 0,
    lost: 0,
    doubled: 0,
    lateness: [],
    faults: [],
  };
  const known = new Set<string>();
  for (const { task, slotMs } of due) {
    const slot = key(task, slotMs);
    known.add(slot);
    const noted = startsOf.get(slot) ?? [];
    const ended = book.ended.get(slot) ?? [];
    const range = book.ranges.find((r) => r.task === task && r.fromMs <= slotMs && slotMs <= r.toMs);
    const ledger = book.ledger.get(slot) ?? range?.outcome;
    const what = `${tasks[task]} ${new Date(slotMs).toISOString()}: noted ${noted.length} starts, ledger ${ledger ?? "empty"}, history ${ended.join(" and ") || "empty"}`;
    if (noted.length > 1 || ended.length > 1) {
      sum.doubled++;
      sum.faults.push(`doubled: ${what}`);
    } else if (ledger === "run" && noted[0] && ended[0] === "succeeded") {
      sum.fired++;
      sum.lateness.push(noted[0].atMs - slotMs);
    } else if ((ledger === "skipped" || ledger === "missed") && noted.length === 0) {
      sum[ledger]++;
    } else {
      sum.lost++;
      sum.faults.push(`lost: ${what}`);
    }
  }
  const unasked = [...startsOf.keys(), ...book.ledger.keys(), ...book.ended.keys()].filter((slot) => {
    const slotMs = Number(slot.split(" ")[1]);
    return slotMs >= fromMs && slotMs <= toMs && !known.has(slot);
  });
  if (unasked.length > 0)
    sum.faults.push(`${unasked.length} slots fired or booked that were never due, first: ${unasked[0]}`);
  if (book.live > 0) sum.faults.push(`${book.live} of these runs are still live after a clean stop`);
  for (const outcome of outcomes) {
    const [counted, recorded] = [book.counted[outcome] ?? 0, book.recorded[outcome] ?? 0];
    if (counted !== recorded) sum.faults.push(`the counters say ${counted} ${outcome}, the history has ${recorded}`);
  }
  return sum;
}

async function readBook(
  client: pg.Client,
  schema: string,
  tasks: string[],
  fromMs: number,
  toMs: number,
): Promise<Book> {
  const s = `"${schema}"`;
  const window = [fromMs, toMs];
  const places = new Map(tasks.map((name, place) => [name, place]));
  const { rows: stored } = await client.query(`select id, name from ${s}.task`);
  const placeOf = new Map(stored.map(({ id, name }) => [Number(id), places.get(name) ?? -1]));
  const place = (row: { task_id: number }) => placeOf.get(row.task_id) ?? -1;

  const ledger = await client.query(
    `select task_id, slot_ms, outcome from ${s}.slot where slot_ms between $1 and $2`,
    window,
  );
  const history = await client.query(
    `select task_id, slot_ms, outcome from ${s}.run_history where slot_ms between $1 and $2`,
    window,
  );
  const ranges = await client.query(
    `select task_id, from_ms, to_ms, outcome from ${s}.slot_range where to_ms >= $1 and from_ms <= $2`,
    window,
  );
  const live = await client.query(`select count(*)::int as runs from ${s}.run where slot_ms between $1 and $2`, window);
  const counted = await client.query(
    `select sum(succeeded)::int as succeeded, sum(failed)::int as failed, sum(cancelled)::int as cancelled
     from (select succeeded, failed, cancelled from ${s}.tally union all select succeeded, failed, cancelled from ${s}.tally_delta) x`,
  );
  const recorded = await client.query(
    `select ${outcomes.map((name, number) => `count(*) filter (where outcome = ${number})::int as ${name}`).join(", ")}
     from ${s}.run_history`,
  );
  const ended = new Map<string, string[]>();
  for (const row of history.rows) {
    const slot = key(place(row), Number(row.slot_ms));
    ended.set(slot, [...(ended.get(slot) ?? []), outcomes[row.outcome] ?? `outcome ${row.outcome}`]);
  }
  return {
    ledger: new Map(
      ledger.rows.map((row) => [key(place(row), Number(row.slot_ms)), slotOutcomes[row.outcome] ?? "unknown"]),
    ),
    ended,
    ranges: ranges.rows.map((row) => ({
      task: place(row),
      fromMs: Number(row.from_ms),
      toMs: Number(row.to_ms),
      outcome: slotOutcomes[row.outcome] ?? "unknown",
    })),
    live: live.rows[0]?.runs ?? 0,
    counted: counted.rows[0] ?? {},
    recorded: recorded.rows[0] ?? {},
  };
}
