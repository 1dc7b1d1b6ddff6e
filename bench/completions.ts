/**
 * What happens when 10,000 runs of one task end in the same instant?
 *
 *   npm run bench -- completions            4 processes, with and without a concurrency limit, then with a lock for each completion
 *   … --ends N, --processes N, --runs N, --no-peers, --json
 *
 * All handlers start and wait; then every process ends its runs at one instant. The bench measures when the last completion is in the
 * history, the longest wait for a lock (pg_locks, every 5 ms), the processes' CPU time, how late a serial task of the same group starts in
 * the meantime, the nodes' warnings and errors, and whether the counters equal the rows. For comparison, the same number of completions is
 * done with a lock in Redis that each completion takes, with a fixed pause between two tries.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { carillon } from "carillon";
import pg from "pg";
import { LockWaits } from "./completions/lock-waits.ts";
import { channelOf, type LockOrder, type Order, parallel, serial } from "./completions/order.ts";
import { type Figures, rounded, suffixed } from "./measure/figures.ts";
import { type Aim, machine, newReport, print } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { serverUrl } from "./measure/services.ts";
import { StatementCount } from "./measure/statements.ts";
import { Subject, type Usage } from "./measure/subject.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "3" },
    ends: { type: "string", default: "10000" },
    processes: { type: "string", default: "4" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
const [runs, ends, processes] = [values.runs, values.ends, values.processes].map(Number) as [number, number, number];
if (![runs, ends, processes].every((value) => Number.isInteger(value) && value > 0))
  throw new Error("--runs, --ends and --processes are whole numbers above 0");

const kinds = ["free", "counted"] as const;
const aims: Aim[] = kinds.flatMap((kind) => [
  { figure: `lock_wait_max_ms_${kind}`, atMost: 50 },
  { figure: `alarms_${kind}`, atMost: 0 },
]);
/** The time in ms from the notification to the instant at which all runs end; every process must have received the notification by then. */
const noticeMs = 1_000;
/** The part with a lock for each completion stops after this time in ms; the bench then reports the completions so far. */
const patienceMs = 60_000;
/** CPU time is measured for this many ms after the burst, to detect a process that still spins. */
const calmMs = 2_000;

const url = serverUrl("postgres");
const client = new pg.Client({ connectionString: url });
await client.connect();
await StatementCount.on(client);
const report = newReport("completions", aims, machine(await serverTitle(client)));
const faults: string[] = [];
try {
  for (let run = 1; run <= runs; run++) {
    const figures: Figures = {};
    for (const kind of kinds) {
      const found = await measure(kind, `bench_completions_${run}_${kind}`);
      tell(`run ${run}, ${kind}`, found);
      Object.assign(figures, suffixed(found, `_${kind}`));
    }
    report.carillon.push(figures);
    if (values["no-peers"]) continue;
    const peer = await measureLock(`bench_completions_${run}_lock`);
    tell(`run ${run}, a lock for each`, peer);
    report.peers["lock for each"] = [...(report.peers["lock for each"] ?? []), suffixed(peer, "_counted")];
  }
} finally {
  await client.end();
}
report.notes.push(
  faults.length === 0
    ? "Counters, history and what was asked for agree."
    : `IT DOES NOT ADD UP\n  ${faults.join("\n  ")}`,
);
if (faults.length > 0) process.exitCode = 1;
print(report, values.json);

async function measure(kind: Order["kind"], schema: string): Promise<Figures> {
  await client.query(`drop schema if exists "${schema}" cascade`);
  const subjects: Subject[] = [];
  const asking = carillon({ store: url, schema, scheduler: false, worker: false, handleSignals: false });
  try {
    for (let i = 0; i < processes; i++) {
      const order: Order = { url, schema, kind, runs: ends, scheduler: i === 0 };
      const subject = new Subject(new URL("./completions/subject.js", import.meta.url), order);
      subjects.push(subject);
      await subject.started(60_000);
    }
    await client.query(`create table "${schema}".bench_alarm (text text)`);
    const at = new Date(Date.now() + 5_000);
    await asking.enqueue(parallel, undefined, { at }); // After this call the process has cached the task.
    await Promise.all(Array.from({ length: ends - 1 }, () => asking.enqueue(parallel, undefined, { at })));
    const started = `select count(*)::int as n from "${schema}".run where state = 3 and started_ms is not null`;
    await until(async () => (await count(started)) === ends, 120_000, "all runs to start");
    const task = (await asking.open()).store.tasks.byName(parallel);
    const { taskId } = await task;
    const before = await Promise.all(subjects.map((subject) => subject.usage()));
    const waits = await LockWaits.on(url);
    const instantMs = Date.now() + noticeMs;
    await client.query("select pg_notify($1, $2)", [channelOf(schema), String(instantMs)]);
    let over = false;
    const serials = (async () => {
      while (!over) {
        await asking.enqueue(serial);
        await pause(50);
      }
    })();
    await pause(Math.max(0, instantMs - Date.now()));
    const live = `select count(*)::int as n from "${schema}".run where task_id = ${taskId}`;
    await until(async () => (await count(live)) === 0, patienceMs, "all runs to be in the history");
    const ackedMs = Date.now() - instantMs;
    over = true;
    await serials;
    const after = await Promise.all(subjects.map((subject) => subject.usage()));
    await waits.end();
    await pause(calmMs);
    const calm = await Promise.all(subjects.map((subject) => subject.usage()));
    await Promise.all(subjects.map((subject) => subject.stop()));
    report.notes.push(...(await slowest(schema)));
    const books = await account(schema, taskId);
    if (waits.longest !== "" && !values.json) console.error(`  longest wait: ${waits.longest}`);
    return {
      all_acked_ms: ackedMs,
      per_s: ends / (ackedMs / 1_000),
      lock_wait_max_ms: waits.longestMs,
      cpu_us_per_op: (total(after) - total(before)) / ends,
      cpu_ms_per_s_after: (total(calm) - total(after)) / 1_000 / (calmMs / 1_000),
      ...books,
    };
  } finally {
    for (const subject of subjects) subject.kill();
    await asking.stop();
    await client.query(`drop schema if exists "${schema}" cascade`);
  }
}

/** The five statements with the longest single execution, from pg_stat_statements; empty if the extension is missing. */
async function slowest(schema: string): Promise<string[]> {
  const { rows: loaded } = await client.query("select 1 from pg_extension where extname = 'pg_stat_statements'");
  if (loaded.length === 0) return [];
  const { rows } = await client.query(
    `select calls, max_exec_time::int as most, mean_exec_time::int as mean, regexp_replace(query, '\\s+', ' ', 'g') as query
     from pg_stat_statements where query like $1 and query not like 'create%' order by max_exec_time desc limit 5`,
    [`%${schema}%`],
  );
  return rows.map(({ calls, most, mean, query }) => {
    const words = String(query).replaceAll(`"${schema}".`, "").trim().slice(0, 90);
    return `${schema}: ${most} ms at most, ${mean} in the mean of ${calls}: ${words}`;
  });
}

/** Compares the store's rows and counters with the number of runs that had to end; called once every process has ended. */
async function account(schema: string, taskId: number): Promise<Figures> {
  const s = `"${schema}"`;
  const { rows } = await client.query(
    `select (select count(*)::int from ${s}.run_history where task_id = $1 and outcome = 0) as ended,
            (select count(distinct id)::int from ${s}.run_history where task_id = $1) as different,
            (select sum(succeeded)::int from (select task_id, succeeded from ${s}.tally
               union all select task_id, succeeded from ${s}.tally_delta) x where task_id = $1) as counted,
            (select count(*)::int from ${s}.bench_alarm) as alarms,
            (select coalesce(max(started_ms - created_ms), 0)::float8 from ${s}.run_history where task_id <> $1) as serial_wait,
            (select string_agg(text, '; ') from (select text from ${s}.bench_alarm limit 3) a) as words`,
    [taskId],
  );
  const { ended, different, counted, alarms, serial_wait, words } = rows[0] ?? {};
  if (ended !== ends || different !== ends || counted !== ends)
    faults.push(`${schema}: asked for ${ends}, ended ${ended}, ${different} different, counted ${counted}`);
  if (alarms > 0) report.notes.push(`${schema} complained: ${words}`);
  return { lost: ends - different, doubled: ended - different, alarms, serial_wait_max_ms: serial_wait };
}

async function measureLock(schema: string): Promise<Figures> {
  const s = `"${schema}"`;
  await client.query(`drop schema if exists ${s} cascade`);
  await client.query(`create schema ${s}; create table ${s}.counter (ended int); insert into ${s}.counter values (0);
    create table ${s}.live (id int primary key); create table ${s}.ended (id int primary key); create table ${s}.wait (ms float8)`);
  await client.query(`insert into ${s}.live select generate_series(0, ${ends - 1})`);
  const subjects: Subject[] = [];
  try {
    for (let i = 0; i < processes; i++) {
      const [from, to] = [Math.floor((i * ends) / processes), Math.floor(((i + 1) * ends) / processes)];
      const order: LockOrder = { url, redisUrl: serverUrl("redis"), schema, from, to };
      const subject = new Subject(new URL("./completions/lock-each.js", import.meta.url), order);
      subjects.push(subject);
      await subject.started(60_000);
    }
    const before = await Promise.all(subjects.map((subject) => subject.usage()));
    const instantMs = Date.now() + noticeMs;
    await client.query("select pg_notify($1, $2)", [channelOf(schema), String(instantMs)]);
    await pause(Math.max(0, instantMs - Date.now()));
    const left = `select count(*)::int as n from ${s}.live`;
    await until(async () => (await count(left)) === 0, patienceMs, "the locks to let all runs end").catch((error) => {
      report.notes.push(`${error.message}: the figures are of what it had done by then.`);
    });
    const done = ends - (await count(left));
    const ackedMs = Date.now() - instantMs;
    const after = await Promise.all(subjects.map((subject) => subject.usage()));
    if (done === ends) await Promise.all(subjects.map((subject) => subject.stop()));
    const counted = await count(`select ended as n from ${s}.counter`);
    return {
      all_acked_ms: ackedMs,
      per_s: done / (ackedMs / 1_000),
      lock_wait_max_ms: done === ends ? await count(`select max(ms) as n from ${s}.wait`) : ackedMs,
      cpu_us_per_op: (total(after) - total(before)) / done,
      lost: ends - done,
      counted_wrong: Math.abs(counted - done),
    };
  } finally {
    for (const subject of subjects) subject.kill();
    await client.query(`drop schema if exists ${s} cascade`);
  }
}

async function count(text: string): Promise<number> {
  return Number((await client.query(text)).rows[0]?.n);
}

async function until(isSo: () => Promise<boolean>, withinMs: number, what: string): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for ${what}`);
    await pause(10);
  }
}

function total(usages: Usage[]): number {
  return usages.reduce((sum, { cpuUs }) => sum + cpuUs, 0);
}

function tell(what: string, figures: Figures): void {
  const words = Object.entries(figures).map(([name, value]) => `${name} ${rounded(value)}`);
  if (!values.json) console.error(`${what}: ${words.join(", ")}`);
}
