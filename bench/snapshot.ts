/**
 * What does it cost when another session, such as a dump or a forgotten transaction, holds a snapshot?
 *
 *   npm run bench -- snapshot        10 minutes without a snapshot and 10 with one; 2 million dead rows for a heartbeat
 *   … --minutes N, --per-second N, --dead N, --json
 *
 * One process enqueues 1,000 runs a second, ten per statement, and executes them. A vacuum runs every 30 s, as autovacuum would. The first
 * part has no snapshot; in the second, equally long part another connection holds a snapshot from the beginning, so that vacuum cannot
 * remove the rows of ended runs.
 *
 * - p99_ms_free, p99_ms_held: from the enqueue to the start of the handler. runs_per_s, minutes: the rate, and the length of each part.
 * - beat_max_ms: the longest of 50 heartbeats when beat_dead_rows dead rows of ready runs precede the first live one in the index.
 * - beat_first_ms: the longer of the two heartbeats before those 50. Their query for waiting runs passes all dead rows; later heartbeats
 *   skip them.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { carillon } from "carillon";
import pg from "pg";
import { type Figures, latenessFigures } from "./measure/figures.ts";
import { defineTask, openPostgres } from "./measure/internals.ts";
import { type Aim, machine, newReport, print } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { serverUrl } from "./measure/services.ts";

const batch = 10;
const beats = 50;
const vacuumMs = 30_000;
/** Runs in the first 5 s are not measured, because code is compiled and statements are prepared. */
const warmUpMs = 5_000;

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    "per-second": { type: "string", default: "1000" },
    dead: { type: "string", default: "2000000" },
    json: { type: "boolean", default: false },
  },
});
const [minutes, perSecond, dead] = [values.minutes, values["per-second"], values.dead].map((text) => {
  const number = Number(text);
  if (!(number > 0)) throw new Error(`a number above 0 is wanted, not ${text}`);
  return number;
}) as [number, number, number];
const aims: Aim[] = [{ figure: "beat_max_ms", atMost: 100 }];

const url = serverUrl("postgres");
const client = await connect();
const report = newReport("snapshot", aims, machine(await serverTitle(client)));
const beaten = await heartbeats();
const free = await load(false);
aims.push({ figure: "p99_ms_held", atMost: 3 * free.p99Ms });
const held = await load(true);
report.carillon.push({
  ...beaten,
  p99_ms_free: free.p99Ms,
  p99_ms_held: held.p99Ms,
  runs_per_s: Math.min(free.perSecond, held.perSecond),
  minutes,
});
await client.end();
print(report, values.json);
process.exit();

async function connect(): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: url });
  await made.connect();
  return made;
}

/** Takes a snapshot on a new connection; the returned function releases it. */
async function hold(schema: string): Promise<() => Promise<void>> {
  const holder = await connect();
  await holder.query("begin isolation level repeatable read");
  await holder.query(`select count(*) from ${schema}.session`);
  return () => holder.end();
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

async function heartbeats(): Promise<Figures> {
  const schema = `bench_snapshot_${process.pid}_beat`;
  const store = await openPostgres({ url, schema });
  const nowMs = Date.now();
  const groups = ["default"];
  const identity = { node: "one", role: "node" as const, host: "here", pid: process.pid, version: "0", groups };
  try {
    const opened = await store.sessions.open({ ...identity, timeoutMs: 3_600_000 }, nowMs);
    if ("taken" in opened) throw new Error("the name is taken");
    const change = { author: "bench", reason: "", nowMs };
    const { record } = await store.tasks.save(defineTask("ended", {}), null, change);
    await client.query(
      `insert into ${schema}.run (id, due_ms, created_ms, task_id, group_id, version, state, priority, source)
       select -n, $1, $1, $2, $3, 1, 2, 5, 0 from generate_series(1, ${dead}) n`,
      [nowMs, record.taskId, record.groupId],
    );
    const release = await hold(schema);
    await client.query(`delete from ${schema}.run where id < 0`);
    const beat = () => timed(() => store.sessions.beat(opened.sessionId, Date.now()));
    const first = [await beat(), await beat()];
    const took: number[] = [];
    for (let n = 0; n < beats; n++) took.push(await beat());
    await release();
    return { beat_max_ms: Math.max(...took), beat_dead_rows: dead, beat_first_ms: Math.max(...first) };
  } finally {
    await store.close();
    await client.query(`drop schema if exists ${schema} cascade`);
  }
}

async function load(isHeld: boolean): Promise<{ p99Ms: number; perSecond: number }> {
  const schema = `bench_snapshot_${process.pid}_${isHeld ? "held" : "free"}`;
  const tower = carillon({ store: url, schema, handleSignals: false, concurrency: 100 });
  const lateness: number[] = [];
  let counts = false;
  const task = tower.task<number>("works", {}, (_run, addedMs) => {
    if (counts) lateness.push(performance.now() - addedMs);
  });
  await tower.start();
  const release = isHeld ? await hold(schema) : undefined;
  const vacuum = setInterval(() => {
    // A vacuum that fails, or is still running, is harmless: the next one follows.
    client.query(`vacuum ${schema}.run`).catch((error) => process.stderr.write(`no vacuum: ${error}\n`));
  }, vacuumMs);
  const adding = new Set<Promise<unknown>>();
  const began = performance.now();
  const endMs = warmUpMs + minutes * 60_000;
  for (let added = 0; performance.now() - began < endMs; ) {
    const afterMs = performance.now() - began;
    counts = afterMs >= warmUpMs;
    for (const wanted = (afterMs / 1_000) * perSecond; added < wanted; added += batch) {
      const adds = Promise.all(Array.from({ length: batch }, () => task.enqueue(performance.now())));
      adding.add(adds);
      void adds.finally(() => adding.delete(adds));
    }
    await pause(5);
  }
  const done = lateness.length;
  await Promise.all(adding);
  clearInterval(vacuum);
  await tower.stop();
  await release?.();
  await client.query(`drop schema if exists ${schema} cascade`);
  return { p99Ms: latenessFigures(lateness).p99_ms as number, perSecond: done / (minutes * 60) };
}
