/**
 * Does one task's backlog delay another task?
 *
 *   npm run bench -- fair            100,000 queued runs of one task, then a serial task beside them
 *   … --backlog N, --concurrency N, --seconds N, --runs N, --json
 *
 * One process executes 10 runs at once. The backlog's runs take 10 ms each and were due in the past; the serial task's runs are enqueued
 * one every 100 ms, so each is due later than the whole backlog. Lateness is the time from just before the call of `enqueue` to the
 * handler's start, on this process's own clock. The backlog's rate is measured without and with the serial task.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { carillon } from "carillon";
import pg from "pg";
import { type Figures, latenessFigures } from "./measure/figures.ts";
import { type Aim, machine, print, type Report } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";

const runMs = 10;
const everyMs = 100;
const warmMs = 3_000;
const schema = "bench_fair";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "1" },
    backlog: { type: "string", default: "100000" },
    concurrency: { type: "string", default: "10" },
    seconds: { type: "string", default: "15" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
if (values.peers) throw new Error("this question has no peers yet");
const [runs, backlog, concurrency, seconds] = [values.runs, values.backlog, values.concurrency, values.seconds].map(
  Number,
) as [...[number, number, number, number]];
if (![runs, backlog, concurrency, seconds].every((value) => Number.isInteger(value) && value > 0))
  throw new Error("--runs, --backlog, --concurrency and --seconds are whole numbers above 0");
const url = process.env.CARILLON_BENCH_POSTGRES_URL ?? "";
if (url === "") throw new Error("CARILLON_BENCH_POSTGRES_URL is not set; start this by `npm run bench -- fair`");
const aims: Aim[] = [
  { figure: "p99_ms", atMost: 100 },
  { figure: "lost", atMost: 0 },
];

const client = new pg.Client({ connectionString: url });
await client.connect();
const title = await serverTitle(client);
const all: Figures[] = [];
try {
  for (let run = 0; run < runs; run++) all.push(await measure());
} finally {
  await client.query(`drop schema if exists ${schema} cascade`);
  await client.end();
}
const report: Report = {
  question: "fair",
  carillon: all,
  peers: {},
  limit: [],
  aims,
  machine: machine(title),
  notes: [`The backlog alone can go no faster than ${(concurrency * 1_000) / runMs} a second.`],
};
print(report, values.json);

async function measure(): Promise<Figures> {
  await client.query(`drop schema if exists ${schema} cascade`);
  const tower = carillon({ store: url, schema, concurrency, drain: "2s" });
  let flooded = 0;
  const lateness: number[] = [];
  const flood = tower.task("flood", {}, async () => {
    await pause(runMs);
    flooded++;
  });
  const serial = tower.task<number>("serial", { overlap: "queue" }, (_run, enqueuedAt) => {
    lateness.push(performance.now() - enqueuedAt);
  });
  try {
    await flood.enqueue(undefined);
    await client.query(
      `insert into ${schema}.run (id, due_ms, created_ms, task_id, group_id, version, state, priority, source)
       select nextval('${schema}.run_id'), $1::bigint - 1000000 + i, $1, id, group_id, 1, 2, 5, 2
       from ${schema}.task, generate_series(1, $2::int) i where name = 'flood'`,
      [Date.now(), backlog],
    );
    await client.query(`analyze ${schema}.run`);
    await tower.start();
    await pause(warmMs);
    const alone = await pace(() => pause(seconds * 500));
    let asked = 0;
    const beside = await pace(async () => {
      for (const began = performance.now(); performance.now() - began < seconds * 1_000; asked++) {
        await serial.enqueue(performance.now());
        await pause(everyMs);
      }
    });
    const left = await client.query(
      `select count(*)::int as runs from ${schema}.run r join ${schema}.task t on t.id = r.task_id where t.name = 'flood'`,
    );
    if (left.rows[0].runs < concurrency) throw new Error("the backlog did not last; give a larger --backlog");
    await pause(everyMs);
    return {
      ...latenessFigures(lateness),
      flood_per_s_alone: alone,
      flood_per_s_beside: beside,
      lost: asked - lateness.length,
    };
  } finally {
    await tower.stop();
  }

  async function pace(during: () => Promise<unknown>): Promise<number> {
    const [began, before] = [performance.now(), flooded];
    await during();
    return ((flooded - before) * 1_000) / (performance.now() - began);
  }
}
