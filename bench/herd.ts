/**
 * How many requests does one change in a cluster cause at the coordination service, in a small cluster and in a large one?
 *
 *   npm run bench -- herd            20 nodes and 500 workers, then 200 and 5,000, on ZooKeeper and on Redis
 *   … --nodes N --workers N          one size only
 *   … --driver zookeeper|redis, --runs N, --json
 *
 * Every member has its own session (ZooKeeper) or connection (Redis); nodes have rows and heartbeats in the store, workers have rows.
 * Sessions last 60 s, so every live member sends a ping or renewal every 20 s. Each window of 20 s therefore has the same number of pings,
 * and the requests of forty changes within a window stand out; noise_per_change is the error. The servers count the requests, pings
 * included:
 *
 *   requests_per_CHANGE_DRIVER_WORKERS   requests of all members, including the member that changes
 *   packets_sent_per_…, bytes_sent_per_…   answers and events that the server sent for the change: packets of ZooKeeper, bytes of Redis
 *
 * The aim: a change causes no more requests in the large cluster than in the small one, within the noise.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";
import type { Change, Order } from "./herd/crowd.ts";
import { Crowd } from "./herd/crowd-process.ts";
import { type Figures, rounded } from "./measure/figures.ts";
import { type Aim, machine, print, type Report } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { coordinationUrl, type Driver, delivered, requests, serverUrl } from "./measure/services.ts";

const sessionTimeoutMs = 60_000;
/** ZooKeeper clients send a ping, and Redis members a renewal, after each third of their session timeout. */
const windowMs = sessionTimeoutMs / 3;
const changesPerWindow = 40;
/** The interval between changes in ms, long enough that members are notified of each change separately. */
const betweenMs = 250;
const crowds = 4;
const killedTimeoutMs = 4_000;
const killed = 3;
const aboveSmall = 5;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "1" },
    nodes: { type: "string" },
    workers: { type: "string" },
    driver: { type: "string" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
if (values.peers) throw new Error("this question has no peers");
const runs = Number(values.runs);
const sizes =
  values.workers === undefined
    ? [
        [20, 500],
        [200, 5_000],
      ]
    : [[Number(values.nodes ?? 200), Number(values.workers)]];
const chosen = (["zookeeper", "redis"] as const).filter((driver) => (values.driver ?? driver) === driver);
if (chosen.length === 0 || ![runs, ...sizes.flat()].every((value) => Number.isInteger(value) && value > 0))
  throw new Error("--driver is zookeeper or redis; --runs, --nodes and --workers are whole numbers above 0");

const changes: readonly Change[] = ["worker joins", "worker leaves", "node joins", "node leaves", "leader resigns"];
const sent = { zookeeper: "packets_sent", redis: "bytes_sent" } as const;
const nameOf = (what: string) => what.replaceAll(" ", "_");
const client = new pg.Client({ connectionString: serverUrl("postgres") });
await client.connect();
const aims: Aim[] = chosen.flatMap((driver) =>
  [...changes, "node dies"].map((what) => ({ figure: `growth_${nameOf(what)}_${driver}`, atMost: aboveSmall })),
);
const report: Report = {
  question: "herd",
  carillon: [],
  peers: {},
  limit: [],
  aims: sizes.length > 1 ? aims : [],
  machine: machine(await serverTitle(client)),
  notes: ["growth: requests of one change in the large cluster less those in the small one."],
};
try {
  for (let run = 1; run <= runs; run++) {
    const figures: Figures = {};
    for (const driver of chosen) {
      const found: Figures[] = [];
      for (const [nodes = 1, workers = 1] of sizes) {
        const some = await measure(driver, nodes, workers, `bench_herd_${process.pid}_${run}_${driver}_${workers}`);
        found.push(some);
        for (const [name, value] of Object.entries(some)) figures[`${name}_${driver}_${workers}`] = value;
      }
      for (const what of [...changes, "node dies"].map(nameOf)) {
        const [small, large] = found.map((some) => some[`requests_per_${what}`]);
        if (small !== undefined && large !== undefined) figures[`growth_${what}_${driver}`] = large - small;
      }
    }
    report.carillon.push(figures);
  }
} finally {
  await client.end();
}
print(report, values.json);

async function measure(
  driver: "zookeeper" | "redis",
  nodes: number,
  workers: number,
  schema: string,
): Promise<Figures> {
  const order: Order = {
    driver,
    coordination: coordinationUrl(driver, schema) ?? "",
    store: serverUrl("postgres"),
    schema,
    crowd: "c0",
    sessionTimeoutMs,
    beatMs: 5_000,
  };
  const all: Crowd[] = [];
  const open = async (name: string, timeoutMs: number) => {
    const crowd = new Crowd({ ...order, crowd: name, sessionTimeoutMs: timeoutMs });
    all.push(crowd);
    await crowd.ready;
    return crowd;
  };
  const leading = async (some: Crowd[]) => {
    for (;;) {
      const counts = await Promise.all(some.map((crowd) => crowd.ask({ change: "leads" })));
      const at = counts.findIndex((count) => count > 0);
      if (at >= 0) return some[at] as Crowd;
      await pause(50);
    }
  };
  try {
    const began = performance.now();
    const some: Crowd[] = [];
    for (let i = 0; i < crowds; i++) some.push(await open(`c${i}`, sessionTimeoutMs));
    await Promise.all(some.map((crowd) => crowd.ask({ change: "node joins", times: Math.ceil(nodes / crowds) })));
    await Promise.all(some.map((crowd) => crowd.ask({ change: "worker joins", times: Math.ceil(workers / crowds) })));
    await leading(some);
    const upS = (performance.now() - began) / 1_000;
    progress(`${driver}: ${nodes} nodes and ${workers} workers are there after ${upS.toFixed(1)} s`);
    // These nodes have short sessions and are killed later.
    const doomed = await Promise.all(Array.from({ length: killed }, (_, i) => open(`doomed${i}`, killedTimeoutMs)));
    await Promise.all(doomed.map((crowd) => crowd.ask({ change: "node joins", times: 1 })));
    await pause(windowMs / 2);
    // Sessions with a short timeout ping more often, so the quiet window is measured both with and without them.
    const figures: Figures = { up_s: upS };
    const crowd = some[0] as Crowd;
    const quietWithDoomed = await window(driver, async () => undefined);
    const dying = await window(driver, async () => {
      for (const one of doomed) one.kill();
    });
    const quiet = await window(driver, async () => undefined);
    figures.requests_quiet_per_s = (quiet.asked / windowMs) * 1_000;
    const note = (what: string, seen: Counted, without: Counted, times: number) => {
      figures[`requests_per_${nameOf(what)}`] = (seen.asked - seen.windows * without.asked) / times;
      figures[`${sent[driver]}_per_${nameOf(what)}`] = (seen.sent - seen.windows * without.sent) / times;
      progress(
        `${driver}, ${workers} workers, ${what}: ${rounded(figures[`requests_per_${nameOf(what)}`] ?? Number.NaN)} requests`,
      );
    };
    // The killed nodes stop pinging at some moment of that window, so the lower of the two quiet windows is subtracted.
    note("node dies", dying, { ...quiet, asked: Math.min(quiet.asked, quietWithDoomed.asked) }, killed);
    for (const what of changes) {
      const seen = await window(driver, async () => {
        for (let i = 0; i < changesPerWindow; i++) {
          const at = performance.now();
          await (what === "leader resigns" ? await leading(some) : crowd).ask({ change: what, times: 1 });
          await pause(Math.max(0, betweenMs - (performance.now() - at)));
        }
      });
      note(what, seen, quiet, changesPerWindow);
    }
    // The difference between two windows without changes, divided by the number of changes in a window.
    const again = await window(driver, async () => undefined);
    figures.noise_per_change = Math.abs(again.asked / again.windows - quiet.asked) / changesPerWindow;
    await leading(some);
    const { rows } = await client.query(`select count(*)::int as live from "${schema}".session where ended_ms is null`);
    const expected = crowds * (Math.ceil(nodes / crowds) + Math.ceil(workers / crowds));
    if (rows[0]?.live !== expected) throw new Error(`${rows[0]?.live} members live in the store, not ${expected}`);
    return figures;
  } finally {
    for (const crowd of all) crowd.kill();
    await drop(schema);
  }
}

/**
 * Drops the schema. The server may still be processing the nodes that were just killed and then report a deadlock, so the drop is
 * retried.
 */
async function drop(schema: string): Promise<void> {
  for (let tries = 5; ; tries--) {
    try {
      await client.query(`drop schema if exists "${schema}" cascade`);
      return;
    } catch (error) {
      if (tries === 0) throw error;
      await pause(1_000);
    }
  }
}

interface Counted {
  windows: number;
  asked: number;
  sent: number;
}

/** Runs `work` in one window, and returns how far the server's counts rose in it and how many window lengths it took. */
async function window(driver: Driver, work: () => Promise<void>): Promise<Counted> {
  const look = async () => ({ asked: await requests(driver), sent: await delivered(driver) });
  const before = await look();
  const began = performance.now();
  await work();
  const tookMs = performance.now() - began;
  // On a busy machine the changes may take longer than one window; then the measurement lasts several whole windows.
  const windows = Math.ceil(tookMs / windowMs);
  await pause(windows * windowMs - tookMs);
  const after = await look();
  return { asked: after.asked - before.asked, sent: after.sent - before.sent, windows };
}

function progress(text: string): void {
  if (!values.json) console.error(text);
}
