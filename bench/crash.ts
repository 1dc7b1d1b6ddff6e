/**
 * A worker dies with runs in flight: when do its runs start again, and is any run lost or completed twice?
 *
 *   npm run bench -- crash                 three runs of each part, and of the peers: about twenty minutes, five without peers
 *   … --part default|shortest|graceful     one part only
 *   … --runs N, --no-peers, --json
 *
 * - default: one of two workers has 100 runs in flight, and has claimed some of 200 runs that are due within a second; kill -9, default
 *   settings.
 * - shortest: the same with the shortest session timeout (1.5 s) and no grace.
 * - graceful: the same, but the worker is stopped gracefully while its handlers need two more seconds.
 *
 * Each part uses two fresh processes and a fresh schema. All handlers write each start and end to a file. Runs count as claimed ahead if
 * the store's rows assign them to the dead worker and its handlers never logged a start. The death counts as detected when the store ends
 * the worker's session. Afterwards the file is compared with the history: every run must have one accepted end. Peers: see crash/peers.ts.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { carillon } from "carillon";
import pg from "pg";
import { type Order, taskName } from "./crash/order.ts";
import { crashPeers } from "./crash/peers.ts";
import { BenchWorker } from "./crash/worker.ts";
import { type Figures, suffixed } from "./measure/figures.ts";
import { type Aim, addPeer, machine, print, type Report } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";

const inFlight = 100;
const ahead = 200;
/** The runs that the victim is to claim ahead are due after this many ms: late enough to kill the worker before they start. */
const aheadMs = 900;
const patienceMs = 60_000;
const lookMs = 20;

interface Part {
  name: "default" | "shortest" | "graceful";
  settings: Pick<Order, "sessionTimeoutMs" | "graceMs">;
  workMs: number;
}
const parts: Part[] = [
  { name: "default", settings: {}, workMs: 120_000 },
  { name: "shortest", settings: { sessionTimeoutMs: 1_500, graceMs: 0 }, workMs: 120_000 },
  { name: "graceful", settings: {}, workMs: 5_000 },
];
const aims: Aim[] = [
  { figure: "rerun_after_ms", atMost: 10_000 },
  { figure: "ahead_after_detection_ms", atMost: 500 },
  { figure: "rerun_after_ms_shortest", atMost: 2_000 },
  { figure: "ahead_after_detection_ms_shortest", atMost: 500 },
  ...["", "_shortest", "_graceful"].flatMap((suffix) => [
    { figure: `lost${suffix}`, atMost: 0 },
    { figure: `doubled${suffix}`, atMost: 0 },
  ]),
  { figure: "repeated_graceful", atMost: 0 },
];

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "3" },
    part: { type: "string", default: "all" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
const runs = Number(values.runs);
if (!Number.isInteger(runs) || runs < 1) throw new Error(`--runs must be a whole number above 0, not ${values.runs}`);
const chosen = parts.filter(({ name }) => values.part === "all" || values.part === name);
if (chosen.length === 0) throw new Error("--part is default, shortest or graceful");
const url = process.env.CARILLON_BENCH_POSTGRES_URL ?? "";
if (url === "") throw new Error("CARILLON_BENCH_POSTGRES_URL is not set; start this by `npm run bench -- crash`");

const client = new pg.Client({ connectionString: url });
await client.connect();
const report: Report = {
  question: "crash",
  carillon: [],
  peers: {},
  limit: [],
  aims: aims.filter(({ figure }) => chosen.some(({ name }) => figure.endsWith(suffixOf(name)))),
  machine: machine(await serverTitle(client)),
  notes: [],
};
try {
  for (let run = 1; run <= runs; run++) {
    const figures: Figures = {};
    for (const part of chosen) {
      const measured = await measure(part);
      if (!values.json) console.error(`${part.name} ${run}/${runs}: ${JSON.stringify(measured)}`);
      Object.assign(figures, suffixed(measured, suffixOf(part.name)));
    }
    report.carillon.push(figures);
    const peers = values["no-peers"] ? {} : await crashPeers();
    for (const [who, found] of Object.entries(peers)) {
      addPeer(report, who, found);
      if (!values.json) console.error(`${who} ${run}/${runs}: ${JSON.stringify(found)}`);
    }
  }
} finally {
  await client.end();
}
print(report, values.json);

function suffixOf(part: Part["name"]): string {
  return part === "default" ? "" : `_${part}`;
}

interface Note {
  kind: "start" | "end";
  run: number;
  attempt: number;
  worker: string;
  atMs: number;
}

/** Two workers on a fresh schema, and the process that enqueues runs. */
interface Scene {
  readonly asking: ReturnType<typeof carillon>;
  /** Runs a query on the store; `$s` in the text stands for the schema. */
  ask<Row extends object>(text: string): Promise<Row[]>;
  /** Returns the lines that the handlers have logged so far. */
  notes(): Note[];
  start(worker: string): Promise<BenchWorker>;
  /** The number of runs enqueued so far. */
  due: number;
}

async function measure({ name, settings, workMs }: Part): Promise<Figures> {
  const schema = `bench_crash_${name}`;
  const s = `"${schema}"`;
  await client.query(`drop schema if exists ${s} cascade`);
  const folder = mkdtempSync(join(tmpdir(), "carillon-bench-crash-"));
  const log = join(folder, "notes");
  const workers: BenchWorker[] = [];
  const scene: Scene = {
    asking: carillon({ store: url, schema, worker: false, scheduler: false, handleSignals: false }),
    ask: async <Row extends object>(text: string) => (await client.query<Row>(text.replaceAll("$s", s))).rows,
    notes: () => notesOf(log),
    async start(worker) {
      const started = await BenchWorker.start({ store: url, schema, name: worker, log, workMs, ...settings });
      workers.push(started);
      return started;
    },
    due: 0,
  };
  try {
    const victim = await handsFull(scene);
    return await (name === "graceful" ? stopped(scene, victim) : killed(scene, victim));
  } finally {
    await Promise.all(workers.map((worker) => worker.close()));
    await scene.asking.stop();
    await client.query(`drop schema if exists ${s} cascade`);
    rmSync(folder, { recursive: true, force: true });
  }
}

function notesOf(log: string): Note[] {
  return readFileSync(log, "latin1")
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const [kind, run, attempt, worker = "", atMs] = line.split(" ");
      return { kind: kind as Note["kind"], run: Number(run), attempt: Number(attempt), worker, atMs: Number(atMs) };
    });
}

/** Starts both workers; resolves when the victim has runs in flight and has claimed further runs ahead. @returns the victim */
async function handsFull(scene: Scene): Promise<BenchWorker> {
  const { asking, ask, notes } = scene;
  const victim = await scene.start("victim");
  await Promise.all(Array.from({ length: inFlight }, () => asking.enqueue(taskName)));
  scene.due += inFlight;
  // Wait until the store has recorded the start of all these runs, so that they certainly run when the victim is killed.
  await until("all to be in flight", async () => {
    const [row] = await ask<{ n: number }>(
      "select count(*)::int as n from $s.run where state = 3 and started_ms is not null",
    );
    return row?.n === inFlight;
  });
  await scene.start("heir");
  const flying = new Set(notes().map(({ run }) => run));
  // Either worker may claim these runs; while the victim has claimed none of them, more are enqueued.
  for (let claimed = false; !claimed; ) {
    const dueAt = Date.now() + aheadMs;
    await Promise.all(Array.from({ length: ahead }, () => asking.enqueue(taskName, null, { at: dueAt })));
    scene.due += ahead;
    while (!claimed && Date.now() < dueAt - aheadMs / 2) {
      claimed = (await held(scene)).some((run) => !flying.has(run));
      if (!claimed) await pause(lookMs);
    }
  }
  return victim;
}

async function stopped(scene: Scene, victim: BenchWorker): Promise<Figures> {
  await victim.stop();
  await done(scene);
  return account(scene, {});
}

async function killed(scene: Scene, victim: BenchWorker): Promise<Figures> {
  const { ask, notes } = scene;
  const killedMs = victim.kill();
  // The rows show the victim's claims until its death is detected, which takes longer than 100 ms.
  await pause(100);
  const begun = new Set(
    notes()
      .filter(({ worker }) => worker === "victim")
      .map(({ run }) => run),
  );
  const had = await held(scene);
  const [waiting, running] = [had.filter((run) => !begun.has(run)), had.filter((run) => begun.has(run))];
  await done(scene);
  const [session] = await ask<{ ms: number }>("select ended_ms::float8 as ms from $s.session where node = 'victim'");
  const detectedMs = session?.ms ?? Number.NaN;
  const firstByHeir = new Map<number, number>();
  for (const { kind, run, worker, atMs } of notes())
    if (kind === "start" && worker === "heir" && !firstByHeir.has(run)) firstByHeir.set(run, atMs);
  const last = (of: number[]) => Math.max(...of.map((run) => firstByHeir.get(run) ?? Number.POSITIVE_INFINITY));
  return account(scene, {
    in_flight: running.length,
    claimed_ahead: waiting.length,
    detected_after_ms: detectedMs - killedMs,
    rerun_after_ms: last(running) - killedMs,
    ahead_after_ms: last(waiting) - killedMs,
    ahead_after_detection_ms: last(waiting) - detectedMs,
  });
}

/** Returns the ids of the runs that the victim has claimed, according to the store. */
async function held({ ask }: Scene): Promise<number[]> {
  const rows = await ask<{ id: number }>(
    "select r.id::float8 as id from $s.run r join $s.session o on o.id = r.session_id where r.state = 3 and o.node = 'victim'",
  );
  return rows.map(({ id }) => id);
}

/**
 * Waits until all runs have ended, except those that the heir claimed as a first attempt. The bench waits only for the start of these,
 * because their duration does not depend on the crash.
 */
async function done({ ask, notes }: Scene): Promise<void> {
  await until("all to have ended or to be at work with the heir", async () => {
    const [row] = await ask<{ n: number }>(
      `select count(*)::int as n from $s.run r left join $s.session o on o.id = r.session_id
       where not (r.state = 3 and o.node = 'heir' and r.attempt = 1)`,
    );
    return row?.n === 0;
  });
  const heirs = await ask<{ id: number }>("select id::float8 as id from $s.run");
  await until("the heir's runs to start", async () => {
    const started = new Set(notes().map(({ run }) => run));
    return heirs.every(({ id }) => started.has(id));
  });
}

/**
 * Compares the handlers' log with the store. A run is lost if the store has neither its row nor a successful end, or if it never started.
 * It is doubled if the history has two ends of it, or if one attempt started twice.
 */
async function account({ ask, notes, due }: Scene, figures: Figures): Promise<Figures> {
  const [row] = await ask<{ known: number; ends: number; distinct: number }>(
    `select (select count(*) from $s.run)::int + (select count(distinct id) from $s.run_history where outcome = 0)::int as known,
            (select count(*) from $s.run_history)::int as ends, (select count(distinct id) from $s.run_history)::int as distinct`,
  );
  const all = notes();
  const starts = new Map<string, number>();
  for (const { kind, run, attempt } of all)
    if (kind === "start") starts.set(`${run} ${attempt}`, (starts.get(`${run} ${attempt}`) ?? 0) + 1);
  const begun = new Set(all.map(({ run }) => run));
  return {
    ...figures,
    runs_due: due,
    lost: Math.max(due - (row?.known ?? 0), due - begun.size),
    doubled: (row?.ends ?? 0) - (row?.distinct ?? 0) + [...starts.values()].filter((count) => count > 1).length,
    repeated: new Set(all.filter(({ attempt }) => attempt > 1).map(({ run }) => run)).size,
  };
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${patienceMs} ms in vain for ${what}`);
    await pause(lookMs);
  }
}
