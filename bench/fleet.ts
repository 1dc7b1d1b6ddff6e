/**
 * How does a node perform with half a million tasks in fifty thousand groups?
 *
 *   npm run bench -- fleet           500,000 tasks, 50,000 groups; one run
 *   … --quick                        2,000 and 200, to check that the bench works
 *   … --tasks N, --groups N, --pages N, --callers N, --json
 *
 * The tasks are daily and six-hourly crons in three zones at all minutes; a twentieth of them are intervals of six hours. The node plans
 * and serves the HTTP API, and executes no runs. Two callers store the tasks, a thousand in each call (`--callers N`).
 *
 * `start_ms` counts from the start of the node's process. `stall_ms_…` is the longest time for which its event loop was blocked during that
 * measurement. `rss_mb` is its peak memory over all measurements. `timeline_ms` and `spread_ms` are the times of requests for seven days,
 * for the first request and for one that finds the timeline cached. Pages are requested over HTTP from random positions; a page that is
 * not full fails the bench.
 */
import { parseArgs } from "node:util";
import { carillon, cron, defineTask, every } from "carillon";
import { client } from "carillon/client";
import pg from "pg";
import { makeToken } from "./lists/token.ts";
import { type Figures, percentile } from "./measure/figures.ts";
import { freePort } from "./measure/port.ts";
import { machine, newReport, print } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { serverUrl } from "./measure/services.ts";
import { Subject } from "./measure/subject.ts";

const { values } = parseArgs({
  options: {
    tasks: { type: "string" },
    groups: { type: "string" },
    pages: { type: "string", default: "100" },
    callers: { type: "string", default: "2" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
if (values.peers) throw new Error("this question has no peers");
const tasks = Number(values.tasks ?? (values.quick ? 2_000 : 500_000));
const groups = Number(values.groups ?? (values.quick ? 200 : 50_000));
const pages = Number(values.pages);
const callers = Number(values.callers);
if (![tasks, groups, pages, callers].every((value) => Number.isInteger(value) && value > 0))
  throw new Error("--tasks, --groups, --pages and --callers are whole numbers above 0");

const limit = 100;
const savedTogether = 1_000;
const patienceMs = 300_000;
const zones = ["Europe/Berlin", "America/New_York", "Asia/Shanghai"];
const release = { name: "bench", label: "bench", number: null };
const schema = `bench_fleet_${process.pid}`;
const url = serverUrl("postgres");
const sql = new pg.Client({ connectionString: url });
await sql.connect();
const aims = [
  { figure: "create_per_s", atLeast: 20_000 },
  { figure: "start_ms", atMost: 3_000 },
  { figure: "groups_p99_ms", atMost: 100 },
  { figure: "timeline_ms", atMost: 2_000 },
  { figure: "spread_ms", atMost: 2_000 },
  { figure: "rss_mb", atMost: 300 },
];
const report = newReport("fleet", aims, machine(await serverTitle(sql)));
const tower = carillon({ store: url, schema, scheduler: false, worker: false, handleSignals: false });
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

function definitionOf(n: number) {
  const hour = (new Date().getUTCHours() + 2 + (n % 20)) % 24;
  const zone = zones[n % zones.length] as string;
  const minute = Math.floor(n / 20) % 60;
  const expression = n % 7 === 0 ? `${minute} */6 * * *` : `${minute} ${hour} * * *`;
  const schedule = n % 20 === 0 ? every("6h") : cron(expression, { zone });
  const name = `task-${String(n).padStart(6, "0")}`;
  return defineTask(name, { schedule, group: `group-${String(n % groups).padStart(5, "0")}` });
}

/** Stores all tasks. @returns the number of tasks stored per second */
async function create(): Promise<number> {
  const { store, nowMs } = await tower.open();
  const began = performance.now();
  let next = 0;
  const call = async () => {
    while (next < tasks) {
      const from = next;
      next += savedTogether;
      const some = Array.from({ length: Math.min(savedTogether, tasks - from) }, (_, n) => definitionOf(from + n));
      await store.tasks.saveAll(some, { author: "bench", reason: "", nowMs: nowMs() }, { release, graceMs: 60_000 });
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  const { rows } = await sql.query(`select count(*)::int as stored from "${schema}".task`);
  if (rows[0].stored !== tasks) throw new Error(`${tasks} tasks were made, the store has ${rows[0].stored}`);
  return (tasks * 1_000) / (performance.now() - began);
}

async function measure(): Promise<Figures> {
  const figures: Figures = { create_per_s: await create() };
  await sql.query(`vacuum analyze "${schema}".task`);
  await sql.query(`vacuum analyze "${schema}".plan`);
  const port = await freePort();
  const began = performance.now();
  const node = new Subject(new URL("./fleet/node.js", import.meta.url), { url, schema, port });
  subjects.push(node);
  await node.started(patienceMs);
  figures.start_ms = performance.now() - began;
  const started = await node.usage();
  figures.stall_ms_start = started.stallMs;
  figures.rss_mb_start = started.rssBytes / 2 ** 20;
  const api = client({ server: `http://127.0.0.1:${port}`, token: await makeToken(tower) });
  const timed = async (ask: () => Promise<unknown>) => {
    const at = performance.now();
    await ask();
    return performance.now() - at;
  };
  const questions: Record<string, () => Promise<unknown>> = {
    timeline: () => api.getTimeline({ days: 7 }),
    spread: () => api.suggestSpread({ days: 7, within: 10 }),
    firing: () => {
      const since = Math.ceil(Date.now() / 3_600_000) * 3_600_000 + 5 * 3_600_000;
      const iso = (ms: number) => new Date(ms).toISOString();
      return api.listFiring({ days: 7, since: iso(since), until: iso(since + 3_600_000) });
    },
  };
  for (const [name, ask] of Object.entries(questions)) {
    figures[`${name}_ms`] = await timed(ask);
    figures[`stall_ms_${name}`] = (await node.usage()).stallMs;
    figures[`${name}_ms_again`] = await timed(ask);
  }
  const place = () => {
    const after = `group-${String(Math.floor(Math.random() * (groups - limit - 1))).padStart(5, "0")}`;
    return Buffer.from(JSON.stringify([after])).toString("base64url");
  };
  const took: number[] = [];
  for (let n = 0; n < pages; n++)
    took.push(
      await timed(async () => {
        const { items } = await api.listGroups({ limit, cursor: place() });
        if (items.length !== limit) throw new Error(`a page of groups has ${items.length}, not ${limit}`);
      }),
    );
  took.sort((a, b) => a - b);
  figures.groups_p50_ms = percentile(took, 0.5);
  figures.groups_p99_ms = percentile(took, 0.99);
  const asked = await node.usage();
  figures.stall_ms_groups = asked.stallMs;
  figures.rss_mb = asked.rssBytes / 2 ** 20;
  await node.stop();
  return figures;
}
