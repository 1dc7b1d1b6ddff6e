/**
 * How does a store perform with ten million schedules, of which a million are due at one minute?
 *
 *   npm run bench -- schedules       10 M schedules, 1 M of them due at one minute; one run
 *   … --quick                        2,000 and 500, to check that the bench works
 *   … --schedules N, --due N, --callers N, --commands, --json
 *
 * Half of the schedules are tasks, half are named schedules of ten tasks. Two callers store them, a thousand tasks or 500 named schedules
 * in each call, as changes of twelve hours ago, because processes keep re-reading recent changes for minutes. `create_per_s` counts all of
 * them. Then one process starts, which plans and executes; `start_ms` counts from the start of that process. All tasks are commands,
 * because the bench stores their definitions; the process calls a handler instead, which records its start. With `--commands`, it rehearses
 * the commands, and the starts are recorded by `onRun`; a rehearsal checks the program, and writes a log line for each run. Each schedule
 * that is due must have a run for that minute in the store's ledger that starts once, up to ten minutes after the minute, else it counts as
 * lost. `last_start_ms_1m` is the time from the minute to the last start; `rss_mb` is the peak memory of the process.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { carillon, cron } from "carillon";
import pg from "pg";
import { type Figures, latenessFigures } from "./measure/figures.ts";
import { defineTask, releaseOf } from "./measure/internals.ts";
import { machine, newReport, print } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { serverUrl } from "./measure/services.ts";
import { Subject } from "./measure/subject.ts";

const { values } = parseArgs({
  options: {
    schedules: { type: "string" },
    due: { type: "string" },
    callers: { type: "string", default: "2" },
    commands: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
if (values.peers) throw new Error("this question has no peers");
const schedules = Number(values.schedules ?? (values.quick ? 2_000 : 10_000_000));
const due = Number(values.due ?? (values.quick ? 500 : 1_000_000));
const callers = Number(values.callers);
if (![schedules, due, callers].every((value) => Number.isInteger(value) && value > 0) || due > schedules)
  throw new Error("--schedules, --due and --callers are whole numbers above 0, and --due is not above --schedules");

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const agoMs = 12 * hourMs;
const [tasksTogether, namedTogether] = [1_000, 500];
const parents = 10;
/**
 * The time from the first due schedule that is stored to their minute: a part that grows with their number, for storing and planning them,
 * and a fixed one.
 */
const [storeMsEach, settleMs] = [0.55, 45_000];
const startPatienceMs = 300_000;
const patienceMs = 600_000;
const command = { argv: ["true"] };
const by = { release: releaseOf("bench", []), graceMs: minuteMs };
const schema = `bench_schedules_${process.pid}`;
const url = serverUrl("postgres");
const sql = new pg.Client({ connectionString: url });
await sql.connect();
const aims = [
  { figure: "create_per_s", atLeast: 20_000 },
  { figure: "start_ms", atMost: 3_000 },
  { figure: "last_start_ms_1m", atMost: 2_000 },
  { figure: "lost", atMost: 0 },
  { figure: "rss_mb", atMost: 400 },
];
const report = newReport("schedules", aims, machine(await serverTitle(sql)));
const tower = carillon({ store: url, schema, scheduler: false, worker: false, handleSignals: false });
const { store, nowMs } = await tower.open();
const change = () => ({ author: "bench", reason: "", nowMs: nowMs() - agoMs });
const daily = (atMs: number) => {
  const at = new Date(atMs);
  return cron(`${at.getUTCMinutes()} ${at.getUTCHours()} * * *`);
};
const subjects: Subject[] = [];
try {
  report.carillon.push(await measure());
} finally {
  for (const subject of subjects) subject.kill();
  await tower.stop();
  await sql.query(`drop schema if exists "${schema}" cascade`);
  await sql.end();
}
print(report, values.json);
if (report.carillon.some(({ lost, doubled }) => lost !== 0 || doubled !== 0)) process.exitCode = 1;

/**
 * Stores `count` schedules, numbered from `first`. @param atMs returns the time of a schedule in its day @returns how long it took, in ms
 */
async function stored(first: number, count: number, atMs: (n: number) => number): Promise<number> {
  const calls: (() => Promise<unknown>)[] = [];
  const half = first + Math.ceil(count / 2);
  const numbers = (from: number, until: number) => Array.from({ length: until - from }, (_, i) => from + i);
  for (let from = first; from < half; from += tasksTogether) {
    const some = numbers(from, Math.min(half, from + tasksTogether));
    calls.push(() => {
      const tasks = some.map((n) => defineTask(`task-${n}`, { schedule: daily(atMs(n)), command }));
      return store.tasks.saveAll(tasks, change(), by);
    });
  }
  for (let from = half; from < first + count; from += namedTogether) {
    const some = numbers(from, Math.min(first + count, from + namedTogether));
    const of = `many-${calls.length % parents}`;
    calls.push(() => {
      const named = some.map((n) => defineTask(`${of}:named-${n}`, { of, schedule: daily(atMs(n)) }));
      return store.tasks.saveSchedules(of, named, change());
    });
  }
  const began = performance.now();
  const caller = async () => {
    for (let call = calls.pop(); call; call = calls.pop()) await call();
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return performance.now() - began;
}

async function measure(): Promise<Figures> {
  for (let n = 0; n < parents; n++) await store.tasks.save(defineTask(`many-${n}`, { command }), null, change());
  // The other schedules are due two to ten hours from now.
  const laterMs = Date.now() + 2 * hourMs;
  let tookMs = await stored(due, schedules - due, (n) => laterMs + (n % 480) * minuteMs);
  await sql.query(`vacuum analyze "${schema}".task, "${schema}".plan`);
  const dueMs = Math.ceil((Date.now() + settleMs + due * storeMsEach) / minuteMs) * minuteMs;
  tookMs += await stored(0, due, () => dueMs);
  const { rows } = await sql.query(
    `select count(*)::int as planned from "${schema}".plan where next_slot_ms is not null`,
  );
  if (rows[0].planned !== schedules) throw new Error(`${schedules} were stored, the store plans ${rows[0].planned}`);
  const began = performance.now();
  const node = new Subject(new URL("./schedules/node.js", import.meta.url), {
    url,
    schema,
    commands: values.commands,
  });
  subjects.push(node);
  await node.started(startPatienceMs);
  const figures: Figures = { create_per_s: (schedules * 1_000) / tookMs, start_ms: performance.now() - began };
  figures.rss_mb_start = (await node.usage()).rssBytes / 2 ** 20;
  if (Date.now() > dueMs - 15_000) throw new Error("the schedules took so long to store that their minute is too near");
  while (node.starts.length < due && Date.now() < dueMs + patienceMs) await pause(1_000);
  const { cpuUs, rssBytes, stallMs } = await node.usage();
  // The ledger says which run belongs to the slot of each schedule, because a notice does not name the schedule.
  const { rows: ledger } = await sql.query(
    `select string_agg(run_id::text, ',') as runs from "${schema}".slot where slot_ms = $1`,
    [dueMs],
  );
  const runs = new Set(
    String(ledger[0].runs ?? "")
      .split(",")
      .map(Number),
  );
  const firsts = new Map<number, number>();
  let doubled = 0;
  for (const { task: runId, slotMs, atMs } of node.starts) {
    if (slotMs !== dueMs || !runs.has(runId)) throw new Error(`a run of ${new Date(slotMs).toISOString()} started`);
    if (firsts.has(runId)) doubled++;
    else firsts.set(runId, atMs - dueMs);
  }
  const late = [...firsts.values()];
  const { max_ms: last, ...others } = latenessFigures(late);
  Object.assign(figures, { last_start_ms_1m: last, ...others, due, lost: due - firsts.size, doubled });
  Object.assign(figures, { cpu_us_per_slot: cpuUs / due, stall_ms: stallMs, rss_mb: rssBytes / 2 ** 20 });
  await node.stop();
  return figures;
}
