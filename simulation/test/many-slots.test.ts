import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { StartReader, StartWriter } from "../src/soak/many-notes.ts";
import { type Book, definitionsOf, gridOf, ManySlots, phaseOf } from "../src/soak/many-slots.ts";

const grid = gridOf(12, 1);
const firstMs = Date.UTC(2026, 0, 1);
/** The store numbers its tasks from 1. */
const idOf = (task: number) => task + 1;
const slotMs = (task: number, round: number) => firstMs + round * 4_000 + phaseOf(task, grid);

interface Tables {
  slot: number[][];
  slot_range: number[][];
  run_history: number[][];
}

/** Tables and starts of a run in which each slot ran once. */
function allRun() {
  const tables: Tables = { slot: [], slot_range: [], run_history: [] };
  const starts: [task: number, slotMs: number, atMs: number][] = [];
  for (let task = 0; task < grid.tasks; task++)
    for (let round = 0; round < grid.rounds; round++) {
      tables.slot.push([idOf(task), slotMs(task, round), 1]);
      tables.run_history.push([idOf(task), slotMs(task, round), 0, 1]);
      starts.push([task, slotMs(task, round), slotMs(task, round) + 7]);
    }
  return { tables, starts };
}

async function accountOf({ tables, starts }: ReturnType<typeof allRun>) {
  const slots = new ManySlots(grid, firstMs);
  for (const start of starts) slots.start(...start);
  const book: Book = {
    tasks: async () => new Map(definitionsOf(grid).map((_, task) => [idOf(task), task])),
    async *rows(_, table) {
      yield* tables[table as keyof Tables];
    },
  };
  return slots.account(book);
}

describe("the account of slots in millions", () => {
  it("has tasks with all misfire policies, whose slots are spread over the period", () => {
    expect(grid).toEqual({ tasks: 4, rounds: 3 });
    expect(definitionsOf(grid).map(({ name }) => name)).toEqual([
      "many-000000",
      "many-000001",
      "many-000002",
      "many-000003",
    ]);
    expect([0, 1, 2, 3].map((task) => phaseOf(task, grid))).toEqual([0, 1_000, 2_000, 3_000]);
  });

  it("finds no violation if each slot ran once", async () => {
    expect(await accountOf(allRun())).toEqual({
      slotsDue: 12,
      runs: 12,
      missed: 0,
      skipped: 0,
      lost: 0,
      doubled: 0,
      early: 0,
      repeated: 0,
      enqueued: 0,
      executions: 12,
      attemptsLost: 0,
      latenessMs: { p50: 7, p99: 7, max: 7 },
      violations: [],
    });
  });

  it("counts an attempt that a lost worker began as repeated, and slots of a recorded gap as missed", async () => {
    const all = allRun();
    (all.tables.run_history[0] as number[])[3] = 2;
    all.starts.push([0, slotMs(0, 0), slotMs(0, 0) + 9_000]);
    const gone = all.tables.slot.splice(3, 3);
    all.tables.run_history.splice(3, 3);
    all.starts.splice(3, 3);
    all.tables.slot_range.push([2, gone[0]?.[1] as number, gone[2]?.[1] as number, 3]);
    expect(await accountOf(all)).toMatchObject({ runs: 9, missed: 3, repeated: 1, attemptsLost: 1, violations: [] });
  });

  it.each<[string, (all: ReturnType<typeof allRun>) => void, object]>([
    ["has no outcome", ({ tables }) => tables.slot.shift(), { lost: 1 }],
    ["never started", ({ starts }) => starts.shift(), { lost: 1 }],
    ["has no ended run", ({ tables }) => tables.run_history.shift(), { lost: 1 }],
    ["started twice in one attempt", ({ starts }) => starts.push(starts[0] as (typeof starts)[0]), { doubled: 1 }],
    ["has two runs", ({ tables }) => tables.run_history.push(tables.run_history[0] as number[]), { doubled: 1 }],
    ["started although it counts as missed", ({ tables }) => (tables.slot[0] = [1, slotMs(0, 0), 3]), { doubled: 1 }],
    [
      "has an outcome and lies in a gap",
      ({ tables }) => tables.slot_range.push([1, slotMs(0, 0), slotMs(0, 0), 3]),
      {},
    ],
    ["was never due", ({ tables }) => tables.slot.push([1, slotMs(0, 0) + 1, 1]), { lost: 0, doubled: 0 }],
    ["started early", ({ starts }) => (starts[0] = [0, slotMs(0, 0), slotMs(0, 0) - 5]), { early: 1 }],
    ["failed", ({ tables }) => ((tables.run_history[0] as number[])[2] = 1), { lost: 0, doubled: 0 }],
  ])("reports a slot that %s", async (_, spoil, counts) => {
    const all = allRun();
    spoil(all);
    const sum = await accountOf(all);
    expect(sum).toMatchObject(counts);
    expect(sum.violations).not.toEqual([]);
  });

  it("reads the starts of all processes from their files, without the last of a process that was killed while it wrote", async () => {
    const folder = mkdtempSync(join(tmpdir(), "carillon-many-"));
    const reader = new StartReader(folder);
    try {
      const slots = new ManySlots(grid, firstMs);
      const writers = [new StartWriter(folder, "atlas"), new StartWriter(folder, "bora")];
      await Promise.all(writers.map((writer, task) => writer.note(task, slotMs(task, 1), slotMs(task, 1) + 40)));
      reader.take(slots);
      reader.take(slots);
      expect(slots.started).toBe(2);
      appendFileSync(join(folder, "starts-of-cygnus-1"), Buffer.alloc(10));
      await writers[0]?.note(2, slotMs(2, 0), slotMs(2, 0) - 3);
      reader.take(slots);
      expect(slots.started).toBe(3);
    } finally {
      reader.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
