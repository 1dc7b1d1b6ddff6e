/**
 * The load of a soak test that counts slots in millions: thousands of tasks with evenly spread slots. Each slot is accounted for, from the
 * handlers' own records, the ledger (the table of accepted slots) and the history. The memory grows with the number of slots.
 */
import pg from "pg";
import { every } from "../../../scheduler/src/schedule/schedule.ts";
import { defineTask, type TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Violation } from "../history.ts";
import { type Account, numbers } from "./account.ts";
import type { Grid } from "./order.ts";

/** Each task is due once in this time (ms). */
export const periodMs = 4_000;
/** A start counts as early if it is recorded more than this (ms) before its slot; Node's wall clock has whole milliseconds. */
const earlyMs = 1;
/** Starts that are later than this (ms) count as this late in the percentiles. */
const latestMs = 120_000;
const rowsAtOnce = 50_000;
const examplesMost = 20;

/** The ledger's outcomes, as the store numbers them. */
const outcomes = { run: 1, skipped: 2, missed: 3 } as const;
const succeeded = 0;
const accounted = "2, 5: every slot accounted for, none invented";

export const nameOf = (task: number): string => `many-${String(task).padStart(6, "0")}`;
/** Returns the offset of a task's slots within the period, in ms: the tasks are spread evenly over it. */
export const phaseOf = (task: number, { tasks }: Grid): number => Math.floor((task * periodMs) / tasks);

/** Returns the grid for a number of slots at a rate (slots a second). */
export function gridOf(slots: number, rate: number): Grid {
  const tasks = Math.max(1, Math.round((rate * periodMs) / 1_000));
  return { tasks, rounds: Math.ceil(slots / tasks) };
}

/** Returns the tasks of the grid. Each of the three misfire policies applies to a third of them. */
export function definitionsOf(grid: Grid): TaskDefinition[] {
  const misfires = ["all", "fire_once", "skip"] as const;
  return Array.from({ length: grid.tasks }, (_, task) =>
    defineTask(nameOf(task), {
      schedule: every(periodMs, { anchor: phaseOf(task, grid) }),
      misfire: misfires[task % misfires.length] as (typeof misfires)[number],
    }),
  );
}

export interface ManyAccount extends Account {
  /** Slots without an outcome, or with an outcome for which no handler was called or no run ended. */
  readonly lost: number;
  /** Slots of which more runs or more attempts began than the store has. */
  readonly doubled: number;
  readonly early: number;
  /** Slots that were started again because the process of an earlier attempt had died or lost its session. */
  readonly repeated: number;
  readonly latenessMs: { readonly p50: number; readonly p99: number; readonly max: number };
}

/** All measured slots: those due from `firstMs` on, `rounds` of each task. */
export class ManySlots {
  readonly grid: Grid;
  readonly firstMs: number;
  readonly #starts: Uint8Array;
  /** How many starts were late by how many whole milliseconds. */
  readonly #lateness = new Uint32Array(latestMs + 1);
  #latest = 0;
  #early = 0;
  started = 0;
  readonly #violations: Violation[] = [];

  /** @param fromMs the first slot is due at or after this time */
  constructor(grid: Grid, fromMs: number) {
    this.grid = grid;
    this.firstMs = Math.ceil(fromMs / periodMs) * periodMs;
    this.#starts = new Uint8Array(grid.tasks * grid.rounds);
  }

  get endMs(): number {
    return this.firstMs + this.grid.rounds * periodMs;
  }

  /** Records a start that a handler noted. */
  start(task: number, slotMs: number, atMs: number): void {
    const place = this.#placeOf(task, slotMs);
    if (place === undefined) return;
    this.started++;
    this.#starts[place] = Math.min(255, (this.#starts[place] as number) + 1);
    if (atMs < slotMs - earlyMs) {
      this.#early++;
      this.#broken(
        "4, 6: nothing starts before its time",
        `${nameOf(task)} ${iso(slotMs)} started ${slotMs - atMs} ms early`,
      );
    }
    // Only a slot's first start counts for the lateness; a later one repeats an attempt that was lost.
    if ((this.#starts[place] as number) > 1) return;
    const late = Math.max(0, Math.round(atMs - slotMs));
    this.#latest = Math.max(this.#latest, late);
    const bucket = Math.min(latestMs, late);
    this.#lateness[bucket] = (this.#lateness[bucket] as number) + 1;
  }

  /** Compares all slots with the store's ledger and history. The cluster must have ended every run of them. */
  async account(book: Book): Promise<ManyAccount> {
    const size = this.#starts.length;
    const [ledger, attempts, ends] = [new Uint8Array(size), new Uint8Array(size), new Uint8Array(size)];
    const ids = await book.tasks();
    const at = (id: number | undefined, slotMs: number | undefined, what: string) => {
      const task = ids.get(id as number);
      const place = task === undefined ? undefined : this.#placeOf(task, slotMs as number);
      if (place === undefined)
        this.#broken(accounted, `${what} has task ${id} at ${iso(slotMs as number)}, which was never due`);
      return place;
    };
    const window = `slot_ms >= ${this.firstMs} and slot_ms < ${this.endMs}`;
    for await (const [id, slotMs, outcome] of book.rows("task_id, slot_ms, outcome", "slot", window)) {
      const place = at(id, slotMs, "the ledger");
      if (place !== undefined) ledger[place] = outcome as number;
    }
    const ranges = `to_ms >= ${this.firstMs} and from_ms < ${this.endMs}`;
    for await (const [id, from, to, outcome] of book.rows("task_id, from_ms, to_ms, outcome", "slot_range", ranges))
      for (const place of this.#placesIn(ids.get(id as number), from as number, to as number)) {
        if (ledger[place] !== 0) this.#broken(accounted, `${this.#slotOf(place)} has two outcomes`);
        ledger[place] = outcome as number;
      }
    for await (const row of book.rows("task_id, slot_ms, outcome, attempt", "run_history", window)) {
      const [id, slotMs, outcome, attempt] = row;
      const place = at(id, slotMs, "the history");
      if (place === undefined) continue;
      ends[place] = (ends[place] as number) + 1;
      attempts[place] = Math.min(255, attempt as number);
      if (ledger[place] === outcomes.run && outcome !== succeeded)
        this.#broken(
          "3: what is due starts",
          `${this.#slotOf(place)} ended with outcome ${outcome}, attempt ${attempt}`,
        );
    }
    return this.#compared(ledger, attempts, ends);
  }

  #compared(ledger: Uint8Array, attempts: Uint8Array, ends: Uint8Array): ManyAccount {
    const sum = { runs: 0, missed: 0, skipped: 0, lost: 0, doubled: 0, repeated: 0 };
    for (let place = 0; place < ledger.length; place++) {
      const [outcome, starts, attempt, ended] = [ledger, this.#starts, attempts, ends].map((of) => of[place] as number);
      const isRun = outcome === outcomes.run;
      const found = () =>
        `${this.#slotOf(place)}: outcome ${outcome}, ${starts} starts, attempt ${attempt}, ${ended} runs ended`;
      if (outcome === 0 || (isRun && (ended === 0 || starts === 0))) {
        sum.lost++;
        this.#broken(accounted, found());
      } else if ((ended as number) > 1 || (starts as number) > (isRun ? (attempt as number) : 0)) {
        sum.doubled++;
        this.#broken("1: one run a slot, one accepted completion", found());
      } else if (isRun) {
        sum.runs++;
        if ((starts as number) > 1) sum.repeated++;
      } else if (outcome === outcomes.missed) sum.missed++;
      else sum.skipped++;
    }
    return {
      ...sum,
      slotsDue: ledger.length,
      enqueued: 0,
      executions: this.started,
      attemptsLost: attempts.reduce((all, attempt) => all + Math.max(0, attempt - 1), 0),
      early: this.#early,
      latenessMs: { p50: this.#late(0.5), p99: this.#late(0.99), max: this.#latest },
      violations: this.#violations,
    };
  }

  /** Returns the lateness (ms) of the given share of the first starts. */
  #late(share: number): number {
    const all = this.#lateness.reduce((a, b) => a + b, 0);
    let seen = 0;
    for (let ms = 0; ms <= latestMs; ms++) {
      seen += this.#lateness[ms] as number;
      if (seen >= share * all) return ms;
    }
    return Number.NaN;
  }

  /** Returns the number of a slot; undefined if it is not measured or not on the grid. */
  #placeOf(task: number, slotMs: number): number | undefined {
    const round = (slotMs - phaseOf(task, this.grid) - this.firstMs) / periodMs;
    const { tasks, rounds } = this.grid;
    return Number.isInteger(round) && round >= 0 && round < rounds && task < tasks ? task * rounds + round : undefined;
  }

  *#placesIn(task: number | undefined, fromMs: number, toMs: number): Generator<number> {
    if (task === undefined) return;
    const phase = phaseOf(task, this.grid) + this.firstMs;
    const first = Math.max(0, Math.ceil((fromMs - phase) / periodMs));
    const last = Math.min(this.grid.rounds - 1, Math.floor((toMs - phase) / periodMs));
    for (let round = first; round <= last; round++) yield task * this.grid.rounds + round;
  }

  #slotOf(place: number): string {
    const [task, round] = [Math.floor(place / this.grid.rounds), place % this.grid.rounds];
    return `${nameOf(task)} ${iso(this.firstMs + round * periodMs + phaseOf(task, this.grid))}`;
  }

  /** Records a violation; only the first `examplesMost` are kept. */
  #broken(invariant: string, what: string): void {
    if (this.#violations.length < examplesMost) this.#violations.push({ invariant, what });
  }
}

const iso = (ms: number) => new Date(ms).toISOString();

/** The store's tables, read in one snapshot. The tables can be larger than the memory. */
export interface Book {
  /** Returns the task's number on the grid for each task's number in the store. */
  tasks(): Promise<Map<number, number>>;
  rows(columns: string, table: string, where: string): AsyncIterable<number[]>;
}

/** Calls `use` with the store's tables. */
export async function withBook<Result>(
  url: string,
  schema: string,
  use: (book: Book) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: url, types: numbers });
  await client.connect();
  try {
    await client.query("begin isolation level repeatable read, read only");
    return await use({
      async tasks() {
        const { rows } = await client.query(`select id, name from "${schema}".task`);
        return new Map(rows.map(({ id, name }) => [id as number, Number((name as string).replace("many-", ""))]));
      },
      async *rows(columns, table, where) {
        await client.query(
          `declare part no scroll cursor for select ${columns} from "${schema}".${table} where ${where}`,
        );
        for (;;) {
          const { rows } = await client.query({ text: `fetch ${rowsAtOnce} from part`, rowMode: "array" });
          yield* rows as number[][];
          if (rows.length < rowsAtOnce) break;
        }
        await client.query("close part");
      },
    });
  } finally {
    await client.end();
  }
}
