/**
 * How long does a page of a long list take, and how many requests a second does one server answer?
 *
 *   npm run bench -- lists           a million ended runs over 30 days, 100,000 waiting runs; 300 pages of each list
 *   … --count N, --pages N, --seconds N, --json
 *
 * The server is a process of its own; pages are requested over HTTP with a token. Each list is read from its beginning, the list
 * `deep` from a random position. SQL writes the listed rows, because only their number matters. `p99_ms` is that of the slowest
 * list. A page that is not full although more rows must exist fails the bench. A dedicated process measures the server's rate of
 * answers (lists/reader.ts), except for bulk enqueues, which the bench sends itself. Runs enqueued one by one are counted in the store.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { carillon, defineTask } from "carillon";
import { client } from "carillon/client";
import pg from "pg";
import type { Asked, ReaderAnswer, ReaderOrder } from "./lists/reader.ts";
import { makeToken } from "./lists/token.ts";
import { type Figures, percentile, rounded } from "./measure/figures.ts";
import { freePort } from "./measure/port.ts";
import { type Aim, machine, newReport, print } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { serverUrl } from "./measure/services.ts";
import { Subject } from "./measure/subject.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "1000000" },
    pages: { type: "string", default: "300" },
    seconds: { type: "string", default: "5" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
if (values.peers) throw new Error("this question has no peers");
const [count, pages, seconds] = [values.count, values.pages, values.seconds].map(Number) as [number, number, number];
if (![count, pages, seconds].every((value) => Number.isInteger(value) && value > 0))
  throw new Error("--count, --pages and --seconds are whole numbers above 0");

const days = 30;
const dayMs = 86_400_000;
const tasks = 50;
const limit = 50;
const readers = 32;
const aims: Aim[] = [
  { figure: "p99_ms", atMost: 50 },
  { figure: "reads_per_s", atLeast: 3_000 },
  { figure: "enqueues_per_s_single", atLeast: 1_000 },
  { figure: "enqueues_per_s_bulk", atLeast: 30_000 },
];
const schema = `bench_lists_${process.pid}`;
const url = serverUrl("postgres");
const sql = new pg.Client({ connectionString: url });
await sql.connect();
const report = newReport("lists", aims, machine(await serverTitle(sql)));
const tower = carillon({ store: url, schema, scheduler: false, worker: false, handleSignals: false });
const subjects: Subject[] = [];
try {
  const port = await freePort();
  for (let n = 0; n < tasks; n++) await tower.save(defineTask(`task-${n}`, { group: n < 5 ? "a" : "b" }));
  // `fill` gives this task the paused runs. The task must be paused, because the server would release paused runs of other tasks.
  await tower.pause("task-0");
  await fill();
  const server = new Subject(new URL("./remote/server.js", import.meta.url), { url, schema, port });
  subjects.push(server);
  await server.started(120_000);
  report.carillon.push(await measure(`http://127.0.0.1:${port}`, await makeToken(tower)));
  await server.stop();
} finally {
  for (const subject of subjects) subject.kill();
  await tower.stop();
  await sql.query(`drop schema if exists "${schema}" cascade`);
  await sql.end();
}
print(report, values.json);

/**
 * Writes the listed rows. About one ended run in a hundred failed, two in a thousand were cancelled or skipped; the first task
 * has about half of the ended runs.
 */
async function fill(): Promise<void> {
  await tower.open();
  const today = Math.floor(Date.now() / dayMs);
  for (let day = today - days; day < today; day++) {
    const name = `run_history_${new Date(day * dayMs).toISOString().slice(0, 10).replaceAll("-", "")}`;
    await sql.query(
      `create table if not exists "${schema}".${name} partition of "${schema}".run_history for values from (${day * dayMs}) to (${(day + 1) * dayMs})`,
    );
  }
  const fromMs = (today - days) * dayMs;
  await sql.query(
    `insert into "${schema}".run_history (id, due_ms, created_ms, claimed_ms, started_ms, ended_ms, task_id, version, attempt, outcome, priority, source, payload, error)
     select n, at_ms, at_ms, at_ms, at_ms, at_ms + 5, t.id, 1, 1, o.outcome, 5, 0, '{"a": 1}',
            case o.outcome when 1 then '{"code": "E", "message": "no"}'::jsonb end
     from generate_series(1, $1::bigint) n
     cross join lateral (select $2::bigint + (n * $3::bigint) / $1::bigint as at_ms, (hashint8(n)::bigint & 1023) as h) a
     cross join lateral (select case when h < 10 then 1 when h = 10 then 2 when h = 11 then 3 else 0 end as outcome) o
     join (select id, row_number() over (order by id) - 1 as place from "${schema}".task) t
       on t.place = case when h % 2 = 0 then 0 else n % ${tasks} end`,
    [count, fromMs, days * dayMs - 10],
  );
  await sql.query(
    `insert into "${schema}".run (id, due_ms, created_ms, task_id, group_id, version, state, priority, source)
     select $1::bigint + n, $2::bigint + n * 100, $2, t.id, t.group_id, 1, case when n % ${tasks} = 0 then 1 else 2 end, n % 10, 1
     from generate_series(1, $1::bigint / 10) n
     join (select id, group_id, row_number() over (order by id) - 1 as place from "${schema}".task) t on t.place = n % ${tasks}`,
    [count, Date.now() + 3_600_000],
  );
  await sql.query(`select setval('"${schema}".run_id', $1)`, [count * 2]);
  await sql.query(`vacuum analyze "${schema}".run_history`);
  await sql.query(`vacuum analyze "${schema}".run`);
}

async function measure(server: string, token: string): Promise<Figures> {
  const api = client({ server, token });
  const place = () => {
    const endedMs = Date.now() - Math.random() * days * dayMs;
    return Buffer.from(JSON.stringify(["ended", Math.floor(endedMs), count])).toString("base64url");
  };
  const some = () => `task-${1 + Math.floor(Math.random() * (tasks - 1))}`;
  const full = ({ items }: { items: unknown[] }, what: string) => {
    if (items.length !== limit) throw new Error(`a page of ${what} has ${items.length}, not ${limit}`);
  };
  const lists: Record<string, () => Promise<void>> = {
    newest: async () =>
      full(await api.listRuns({ limit, state: ["succeeded", "failed", "cancelled", "skipped"] }), "ended runs"),
    deep: async () => void (await api.listRuns({ limit, cursor: place() })),
    failed: async () => full(await api.listRuns({ limit, state: ["failed"] }), "failures"),
    task: async () => full(await api.listRuns({ limit, task: some(), state: ["succeeded", "failed"] }), "one task's"),
    task_failed: async () => void (await api.listRuns({ limit, task: some(), state: ["failed"] })),
    ready: async () => full(await api.listRuns({ limit, state: ["ready"] }), "ready runs"),
    task_ready: async () =>
      full(await api.listRuns({ limit, task: some(), state: ["ready"] }), "one task's ready runs"),
    paused: async () => full(await api.listRuns({ limit, state: ["paused"] }), "paused runs"),
    plain: async () => full(await api.listRuns({ limit }), "runs"),
    tasks: async () => full(await api.listTasks({ limit }), "tasks"),
    run: async () => void (await api.getRun({ run: 1 + Math.floor(Math.random() * count) })),
    search: async () => void (await api.search({ q: "task-1" })),
  };
  const figures: Figures = {};
  let worst = 0;
  for (const [name, ask] of Object.entries(lists)) {
    const took: number[] = [];
    for (let n = 0; n < pages; n++) {
      const began = performance.now();
      await ask();
      // The first requests are not counted, because they connect, plan queries and compile code.
      if (n >= 10) took.push(performance.now() - began);
    }
    took.sort((a, b) => a - b);
    figures[`p50_ms_${name}`] = percentile(took, 0.5);
    figures[`p99_ms_${name}`] = percentile(took, 0.99);
    worst = Math.max(worst, percentile(took, 0.99));
  }
  figures.p99_ms = worst;
  const port = Number(new URL(server).port);
  const names = Array.from({ length: tasks - 1 }, (_, n) => `task-${n + 1}`);
  const numbers = Array.from({ length: 1_000 }, () => 1 + Math.floor(Math.random() * count));
  const loads: { figure: string; one: string; requests: Asked[] }[] = [
    {
      figure: "reads_per_s",
      one: "read",
      requests: names.map((name) => ({ method: "GET", path: `/v1/tasks/${name}`, status: 200, has: { name } })),
    },
    {
      figure: "reads_per_s_run",
      one: "read_run",
      requests: numbers.map((run) => ({ method: "GET", path: `/v1/runs/${run}`, status: 200, has: { run } })),
    },
    {
      figure: "enqueues_per_s_single",
      one: "enqueue",
      requests: names.map((task) => ({
        method: "POST",
        path: `/v1/tasks/${task}/runs`,
        body: { in: "1d" },
        status: 201,
        has: { created: true },
      })),
    },
  ];
  for (const { figure, one, requests } of loads) {
    const order = { port, token, connections: readers, requests };
    // This second is not measured, because in it plans are cached, connections opened and code compiled.
    await put({ ...order, seconds: 1 });
    const waiting = await waitingRuns();
    const { asked, perS, cpuUs, readerCpuUs } = await put({ ...order, seconds });
    const enqueued = (await waitingRuns()) - waiting;
    if (enqueued !== (one === "enqueue" ? asked : 0)) throw new Error(`${enqueued} runs came of ${asked} requests`);
    figures[figure] = perS;
    figures[`cpu_us_per_${one}`] = cpuUs;
    figures[`reader_cpu_us_per_${one}`] = readerCpuUs;
  }
  const runs = Array.from({ length: 2_000 }, () => ({ task: some(), in: "1d" }));
  figures.enqueues_per_s_bulk = (await rate(async () => void (await api.enqueueRuns({ runs })), 4)) * runs.length;
  if (!values.json)
    console.error(
      Object.entries(figures)
        .map(([name, value]) => `${name} ${rounded(value)}`)
        .join("\n"),
    );
  return figures;
}

async function waitingRuns(): Promise<number> {
  const { rows } = await sql.query(`select count(*)::int as count from "${schema}".run`);
  return rows[0].count;
}

/** Runs the reader process once. Returns the rate of answers, and the CPU time per request of the server and of the reader. */
async function put(order: ReaderOrder) {
  const before = await (subjects[0] as Subject).usage();
  const reader = fileURLToPath(new URL("./lists/reader.js", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [reader, JSON.stringify(order)]);
  const after = await (subjects[0] as Subject).usage();
  const { asked, read, tookMs, cpuUs } = JSON.parse(stdout) as ReaderAnswer;
  if (read === 0) throw new Error("no answer was read");
  return {
    asked,
    perS: (asked * 1_000) / tookMs,
    readerCpuUs: cpuUs / asked,
    cpuUs: (after.cpuUs - before.cpuUs) / asked,
  };
}

async function rate(ask: () => Promise<void>, at: number): Promise<number> {
  const until = performance.now() + seconds * 1_000;
  let asked = 0;
  const began = performance.now();
  const reader = async () => {
    for (; performance.now() < until; asked++) await ask();
  };
  await Promise.all(Array.from({ length: at }, reader));
  return (asked * 1_000) / (performance.now() - began);
}
