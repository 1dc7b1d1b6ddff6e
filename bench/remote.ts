/**
 * How much load of HTTP workers can one server process handle?
 *
 *   npm run bench -- remote          60,000 trivial runs, 500 runs one by one, 2,000 idle workers; three runs
 *   … --count N, --workers N, --seconds N, --runs N, --json
 *
 * The server, the worker and the idle workers run in processes of their own; this process enqueues the runs. `per_s` is counted in the
 * store's history, from the first claim to the last end. `p50_ms` is the time from just before the call of `enqueue` to the handler's first
 * line, on the machine's clock. `cpu_percent_idle` is the server's CPU time while every idle worker waits in a poll.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { carillon, defineTask } from "carillon";
import pg from "pg";
import { type Figures, rounded } from "./measure/figures.ts";
import { freePort } from "./measure/port.ts";
import { type Aim, machine, newReport, print } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { serverUrl } from "./measure/services.ts";
import { Subject } from "./measure/subject.ts";
import { makeKey } from "./remote/key.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "3" },
    count: { type: "string", default: "60000" },
    workers: { type: "string", default: "2000" },
    seconds: { type: "string", default: "30" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
if (values.peers) throw new Error("this question has no peers yet");
const [runs, count, workers, seconds] = [values.runs, values.count, values.workers, values.seconds].map(Number) as [
  number,
  number,
  number,
  number,
];
if (![runs, count, workers, seconds].every((value) => Number.isInteger(value) && value > 0))
  throw new Error("--runs, --count, --workers and --seconds are whole numbers above 0");

const single = 500;
const betweenMs = 10;
const settleMs = 5_000;
const aims: Aim[] = [
  { figure: "per_s", atLeast: 15_000 },
  { figure: "p50_ms", atMost: 3 },
  { figure: "cpu_percent_idle", atMost: 5 },
];
const client = new pg.Client({ connectionString: serverUrl("postgres") });
await client.connect();
const report = newReport("remote", aims, machine(await serverTitle(client)));
try {
  for (let run = 1; run <= runs; run++) report.carillon.push(await measure(`bench_remote_${process.pid}_${run}`));
} finally {
  await client.end();
}
print(report, values.json);

async function measure(schema: string): Promise<Figures> {
  const url = serverUrl("postgres");
  const port = await freePort();
  const subjects: Subject[] = [];
  const begin = async (program: string, order: object) => {
    const subject = new Subject(new URL(`./remote/${program}.js`, import.meta.url), order);
    subjects.push(subject);
    await subject.started(120_000);
    return subject;
  };
  const tower = carillon({ store: url, schema, scheduler: false, worker: false, handleSignals: false });
  try {
    const server = await begin("server", { url, schema, port });
    for (const name of ["trivial", "timed", "nothing"]) await tower.save(defineTask(name));
    const key = await makeKey(tower);
    const reach = { server: `http://127.0.0.1:${port}`, key };
    // The first enqueue loads the task into this process's cache.
    await tower.enqueue("trivial");
    for (let made = 1; made < count; made += 2_000)
      await Promise.all(Array.from({ length: Math.min(2_000, count - made) }, () => tower.enqueue("trivial")));
    const before = await server.usage();
    const worker = await begin("worker", reach);
    await ended(schema, "trivial");
    const cpuUs = (await server.usage()).cpuUs - before.cpuUs;
    const { rows } = await client.query(
      `select max(ended_ms) - min(claimed_ms) as took, count(distinct h.id) as distinct
       from "${schema}".run_history h join "${schema}".task t on t.id = h.task_id where t.name = 'trivial' and h.outcome = 0`,
    );
    const took = Number(rows[0]?.took);
    if (Number(rows[0]?.distinct) !== count) throw new Error(`${rows[0]?.distinct} runs succeeded, not ${count}`);
    await pause(500);
    for (let i = 0; i < single; i++) {
      await tower.enqueue("timed", { askedMs: performance.timeOrigin + performance.now() });
      await pause(betweenMs);
    }
    await ended(schema, "timed");
    const times = await client.query(
      `select result::float8 as ms from "${schema}".run_history h join "${schema}".task t on t.id = h.task_id
       where t.name = 'timed' and h.outcome = 0 order by 1`,
    );
    const ms = times.rows.map((row) => row.ms as number);
    if (ms.length !== single) throw new Error(`${ms.length} runs succeeded, not ${single}`);
    await worker.stop();

    const idlers = await begin("idlers", { ...reach, workers });
    await pause(settleMs);
    const [quiet, began] = [await server.usage(), performance.now()];
    await pause(seconds * 1_000);
    const busy = await server.usage();
    const idleMs = performance.now() - began;
    const live = await client.query(
      `select count(*)::int as live from "${schema}".session where ended_ms is null and role = 'worker'`,
    );
    if (live.rows[0]?.live !== workers)
      throw new Error(`${live.rows[0]?.live} workers live in the store, not ${workers}`);
    await idlers.stop();
    await server.stop();
    const figures = {
      per_s: (count / took) * 1_000,
      cpu_us_per_op: cpuUs / count,
      p50_ms: ms[Math.floor(single / 2)] as number,
      p99_ms: ms[Math.floor(single * 0.99)] as number,
      cpu_percent_idle: (busy.cpuUs - quiet.cpuUs) / 10 / idleMs,
      rss_mb: busy.rssBytes / 2 ** 20,
      lost: 0,
      doubled: 0,
    };
    if (!values.json)
      console.error(
        Object.entries(figures)
          .map(([name, value]) => `${name} ${rounded(value)}`)
          .join(", "),
      );
    return figures;
  } finally {
    for (const subject of subjects) subject.kill();
    await tower.stop();
    await client.query(`drop schema if exists "${schema}" cascade`);
  }
}

/** Waits until all runs of the task have ended. It queries rarely, so that it adds little load to the measurement. */
async function ended(schema: string, task: string): Promise<void> {
  for (;;) {
    const { rows } = await client.query(
      `select (select count(*)::int from "${schema}".run r where r.task_id = t.id) as live from "${schema}".task t where name = $1`,
      [task],
    );
    if (rows[0]?.live === 0) return;
    await pause(100);
  }
}
