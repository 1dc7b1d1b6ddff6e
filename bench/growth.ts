/**
 * What does a slot cost as the number of tasks grows?
 *
 *   npm run bench -- growth          1,000, 10,000, 100,000 and 1,000,000 tasks, 1,000 slots a second in total, one run; then the same with
 *                                    that many named schedules of one task
 *   … --quick                        100 and 1,000 tasks, 3 s each, to check that the bench works
 *   … --only carillon                tasks only; --only schedules: named schedules only
 *   … --most N, --per-second N, --seconds N, --runs N, --json
 *
 * For every number of tasks, equally many slots are due each second, spread evenly: 1,000 tasks are due every second, a million tasks every
 * 1,000 seconds. The tasks are stored before the process under test starts, with a last change a day ago, as if an API had created them.
 * They are commands, which that process does not execute; it records the start of each run (`onRun`). Over some seconds the bench measures,
 * per slot, the process's CPU time and PostgreSQL's statement time (pg_stat_statements); further statements a second, lateness, the
 * process's memory, and its heap in use. Each slot that was due, as computed here, must have started once. The aim: a slot costs no more
 * with a million tasks than with a thousand.
 */
import { setTimeout as pause } from "node:timers/promises";
import { type Carillon, carillon, every, type ScheduleSpec } from "carillon";
import { Arena } from "./contest/arena.ts";
import { phaseOf } from "./contest/calls.ts";
import { wallAheadMs } from "./contest/clock.ts";
import { taskName } from "./contest/contender.ts";
import { contest } from "./contest/contest.ts";
import { notesOf } from "./contest/notes.ts";
import { spentBy } from "./contest/spent.ts";
import { type Figures, latenessFigures, suffixed } from "./measure/figures.ts";
import { defineTask, releaseOf } from "./measure/internals.ts";

/** The shortest time in ms from the process's start to the measurement, so that the planning at the start is not measured. */
const settleMs = 20_000;
const patienceMs = 300_000;
const clockErrorMs = 1;
/** Slots that are late by less than this many ms do not count as a backlog, because such lateness is normal under load. */
const behindMs = 2_000;
const tasksPerStatement = 1_000;
const schedulesPerCall = 10_000;
const command = { argv: ["true"] };
/** Name of the task with the named schedules. The process under test does not define this task, so the task stays as it was stored. */
const scheduled = `${taskName}-scheduled`;
const dayMs = 86_400_000;

await contest({
  name: "growth",
  who: ["carillon", "schedules"],
  ways: ["schedules"],
  sizes: {
    least: { usual: 1_000, quick: 100 },
    most: { usual: 1_000_000, quick: 1_000 },
    "per-second": { usual: 1_000, quick: 50 },
    seconds: { usual: 15, quick: 3 },
  },
  runs: 1,
  compared: Object.fromEntries(
    [1_000, 10_000, 100_000].flatMap((tasks) =>
      ["cpu_us_per_slot", "sql_us_per_slot", "rss_mb", "heap_mb"].map((name) => [`${name}_${tasks}`, "less" as const]),
    ),
  ),
  async measure(who, { least, most, "per-second": perSecond, seconds }) {
    // Each slot needs a time of its own in whole ms, because a time identifies its slot.
    if (perSecond > 1_000) throw new Error("--per-second is 1,000 at most");
    const figures: Figures = {};
    const store = who === "schedules" ? storeSchedules : storeTasks;
    for (let tasks = least; tasks <= most; tasks *= 10)
      Object.assign(
        figures,
        suffixed(await cost(store, tasks, (tasks * 1_000) / perSecond, seconds * 1_000), `_${tasks}`),
      );
    return figures;
  },
});

async function cost(store: Stores, tasks: number, periodMs: number, forMs: number): Promise<Figures> {
  const arena = await Arena.open({ who: "carillon", profile: "prompt" });
  try {
    const statements = await spentBy(arena);
    const began = performance.now();
    await stored(arena, tasks, periodMs, store);
    const setUpMs = performance.now() - began;
    const runs = await arena.enter("runs");
    await runs.ask("workStored");
    await pause(settleMs);
    const caughtUpMs = settleMs + (await caughtUp(arena));
    const [before, spentBefore] = [await runs.ask("usage"), await statements()];
    const fromMs = Date.now();
    await pause(forMs);
    const untilMs = Date.now();
    const [after, spentAfter] = [await runs.ask("usage"), await statements()];
    // Wait for the runs whose slots were due just before the end and have not started yet.
    await pause(1_000);
    const wallAhead = wallAheadMs();
    const heapBytes = await runs.ask("liveBytes");
    const notes = await notesOf([runs]);
    const due = dueBetween(tasks, periodMs, fromMs, untilMs);
    const [late, sums] = [[] as number[], { lost: 0, doubled: 0 }];
    for (const slotMs of due) {
      const atMs = notes.began.get(slotMs);
      if (atMs === undefined) sums.lost++;
      else late.push(atMs + wallAhead - slotMs);
      if (notes.doubled.has(slotMs)) sums.doubled++;
    }
    await runs.close();
    return {
      cpu_us_per_slot: (after.cpuUs - before.cpuUs) / due.length,
      sql_us_per_slot: (spentAfter.us - spentBefore.us) / due.length,
      statements_per_s: ((spentAfter.calls - spentBefore.calls) * 1_000) / forMs,
      ...latenessFigures(late),
      early: late.filter((ms) => ms < -clockErrorMs).length,
      slots_due: due.length,
      ...sums,
      rss_mb: after.rssBytes / 2 ** 20,
      heap_mb: heapBytes / 2 ** 20,
      set_up_ms: setUpMs,
      caught_up_ms: caughtUpMs,
    };
  } finally {
    await arena.close();
  }
}

/** Stores `tasks` schedules, as tasks or as named schedules. @param scheduleOf returns the schedule with the number n, from 0 */
type Stores = (tower: Carillon, tasks: number, scheduleOf: (n: number) => ScheduleSpec) => Promise<void>;

/** Stores tasks through the store's port, 1,000 per statement. */
async function storeTasks(...[tower, tasks, scheduleOf]: Parameters<Stores>): Promise<void> {
  const { store, nowMs } = await tower.open();
  const by = { release: releaseOf("bench", []), graceMs: 60_000 };
  for (let from = 0; from < tasks; from += tasksPerStatement) {
    const some = Array.from({ length: Math.min(tasksPerStatement, tasks - from) }, (_, i) =>
      defineTask(`${taskName}-${from + i}`, { schedule: scheduleOf(from + i), command }),
    );
    await store.tasks.saveAll(some, { author: "bench", reason: "", nowMs: nowMs() }, by);
  }
}

/** Stores named schedules of one task, in batches that fit into memory. */
async function storeSchedules(...[tower, tasks, scheduleOf]: Parameters<Stores>): Promise<void> {
  const { store, nowMs } = await tower.open();
  await store.tasks.save(defineTask(scheduled, { command }), null, { author: "bench", reason: "", nowMs: nowMs() });
  for (let from = 0; from < tasks; from += schedulesPerCall) {
    const some = Array.from({ length: Math.min(schedulesPerCall, tasks - from) }, (_, i) => ({
      name: String(from + i),
      schedule: scheduleOf(from + i),
    }));
    await tower.schedules.setAll(scheduled, some);
  }
}

/** Stores the tasks or schedules and backdates them by a day, because processes keep re-reading recent changes for minutes. */
async function stored(arena: Arena, tasks: number, periodMs: number, store: Stores): Promise<void> {
  const tower = carillon({ store: arena.url, scheduler: false, worker: false, handleSignals: false });
  try {
    await store(tower, tasks, (n) => every(periodMs, { anchor: phaseOf(n, tasks, periodMs) }));
  } finally {
    await tower.stop();
  }
  await arena.client.query(`update carillon.task set changed_ms = changed_ms - ${dayMs}`);
  await arena.client.query("vacuum analyze carillon.task, carillon.plan");
  const { rows } = await arena.client.query(
    "select count(*)::int as n from carillon.plan where next_slot_ms is not null",
  );
  if (rows[0].n !== tasks) throw new Error(`${tasks} tasks were made, the store plans ${rows[0].n}`);
}

/**
 * Waits until no slot is overdue by more than `behindMs`. Slots came due while the tasks were stored; with a million tasks it takes minutes
 * to execute them.
 * @returns how long the wait took, in ms
 */
async function caughtUp({ client }: Arena): Promise<number> {
  const began = performance.now();
  for (;;) {
    const { rows } = await client.query(
      "select (select count(*) from carillon.plan where next_slot_ms < $1)::int + (select count(*) from carillon.run where due_ms < $1)::int as n",
      [Date.now() - behindMs],
    );
    const ms = performance.now() - began;
    if (rows[0].n === 0) return ms;
    if (ms > patienceMs) throw new Error(`after ${Math.round(ms)} ms ${rows[0].n} slots of the past are not done`);
    await pause(1_000);
  }
}

function dueBetween(tasks: number, periodMs: number, fromMs: number, untilMs: number): number[] {
  const due: number[] = [];
  for (let task = 0; task < tasks; task++) {
    const phase = phaseOf(task, tasks, periodMs);
    for (let at = Math.ceil((fromMs - phase) / periodMs) * periodMs + phase; at < untilMs; at += periodMs) due.push(at);
  }
  return due;
}
