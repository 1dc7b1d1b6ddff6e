/**
 * What happens while the coordination service, or the store, is unavailable, and after it is back?
 *
 *   npm run bench -- outage                 ZooKeeper down for 10 minutes, Redis too, the store for 2: about 25 minutes
 *   … --minutes N, --store-minutes N        shorter outages; fractions are allowed
 *   … --part zookeeper|redis|store          one of the three
 *   … --json
 *
 * Three nodes, session timeout 10 s. The service is killed with -9 while 500 tasks are due every second, and started again: ZooKeeper with
 * its data, Redis without data. The aim: every slot fires once, with the same lateness as before, and a leader exists within 5 s after the
 * service is back, without help. Then every connection to the store is cut, with 150 tasks of all misfire policies: no unclaimed run may
 * start, and afterwards each slot must be a run or recorded as missed, as the policy says. The same applies to slots that had been planned
 * ahead (25 s) before the outage: late ones are recorded as missed or run.
 */
import { loadavg } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";
import { Cluster } from "./cluster/cluster.ts";
import { chosen, coordinationUrl, startService } from "./cluster/drivers.ts";
import { type SlotSum, sumSlots } from "./cluster/slots.ts";
import { type Figures, latenessFigures, suffixed } from "./measure/figures.ts";
import { type Aim, machine, print, type Report } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { sumPolicy } from "./outage/policies.ts";

const nodes = 3;
const sessionTimeoutMs = 10_000;
const patienceMs = 60_000;
/** The time without a fault before the outage, in ms, for comparison. */
const beforeMs = 10_000;
/** The time in ms after the outage for which the bench checks that no further leader is elected. */
const afterMs = 15_000;
/** Slots are evaluated in spans of this many ms, to limit the data in memory. */
const chunkMs = 30_000;
const policies = ["fire_once", "skip", "all"] as const;
const tasksPerPolicy = 50;
const aims: Aim[] = ["zookeeper", "redis"].flatMap((service) => [
  { figure: `leader_ms_${service}`, atMost: 5_000 },
  { figure: `terms_after_${service}`, atMost: 1 },
  { figure: `lost_${service}`, atMost: 0 },
  { figure: `doubled_${service}`, atMost: 0 },
]);
aims.push(...["lost_store", "doubled_store", "invented_store"].map((figure) => ({ figure, atMost: 0 })));

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    "store-minutes": { type: "string", default: "2" },
    part: { type: "string", default: "all" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
if (values.peers) throw new Error("this question has no peers yet: --peers can be asked for where there are some");
const milliseconds = (name: "minutes" | "store-minutes"): number => {
  const value = Number(values[name]) * 60_000;
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0, not ${values[name]}`);
  return value;
};
const [serviceMs, storeMs] = [milliseconds("minutes"), milliseconds("store-minutes")];
const parts = chosen("part", values.part, ["zookeeper", "redis", "store"] as const);
const url = process.env.CARILLON_BENCH_POSTGRES_URL ?? "";
if (url === "") throw new Error("CARILLON_BENCH_POSTGRES_URL is not set; start this by `npm run bench -- outage`");

const client = new pg.Client({ connectionString: url });
await client.connect();
const figures: Figures = {};
const faults: string[] = [];
const titles = [await serverTitle(client)];
const aboutMs = parts.reduce((sum, part) => sum + 60_000 + (part === "store" ? storeMs : serviceMs), 0);
progress(`this takes about ${Math.ceil(aboutMs / 60_000)} minutes`);
try {
  for (const part of parts) Object.assign(figures, suffixed(await measure(part), `_${part}`));
} finally {
  await client.end();
}
figures.load_1m = loadavg()[0] as number;
const report: Report = {
  question: "outage",
  carillon: [figures],
  peers: {},
  limit: [],
  aims: aims.filter(({ figure }) => figure in figures),
  machine: machine(titles.join(", ")),
  notes: [
    faults.length === 0
      ? "Every slot was held against the handlers' notes, the ledger and the history: each ended once, or was missed by its policy."
      : `IT DOES NOT ADD UP\n  ${faults.slice(0, 10).join("\n  ")}`,
  ],
};
if (faults.length > 0) {
  process.exitCode = 1;
  if (values.json) console.error(faults.slice(0, 10).join("\n"));
}
print(report, values.json);

function measure(part: (typeof parts)[number]): Promise<Figures> {
  return part === "store" ? withoutStore() : withoutService(part);
}

async function withoutService(driver: "zookeeper" | "redis"): Promise<Figures> {
  const tasks = Array.from({ length: 500 }, (_, i) => ({ name: `outage-${String(i).padStart(3, "0")}` }));
  const service = await startService(driver);
  if (!service) throw new Error(`${driver} is no service`);
  titles.push(service.title);
  const schema = `bench_outage_${driver}`;
  const cluster = new Cluster({
    client,
    storeUrl: url,
    schema,
    nodes,
    tasks,
    sessionTimeoutMs,
    coordinationUrl: coordinationUrl(driver, service, "bench"),
  });
  const spans: { what: string; sum: SlotSum }[] = [];
  let fromMs = 0;
  /** Evaluates the slots since the last call, without those of the last 2.5 to 3.5 s. */
  const account = async (what: string) => {
    const toMs = Math.floor((Date.now() - 2_500) / 1_000) * 1_000;
    const span = { fromMs, toMs, faultMs: fromMs, quietMs: fromMs, claimed: new Set<string>() };
    const sum = await sumSlots(client, schema, tasks, cluster.starts, span);
    cluster.starts.forget(toMs);
    fromMs = toMs;
    spans.push({ what, sum });
    faults.push(...sum.faults.slice(0, 3).map((text) => `${driver}, ${what}: ${text}`));
    progress(
      `${driver}, ${what}: ${sum.due} due, worst ${Math.round(sum.worstMs)} ms (due ${new Date(span.faultMs + (sum.worstAtMs || 0)).toISOString()}), ${sum.lost} lost, ${sum.doubled} doubled`,
    );
  };
  try {
    await cluster.begin();
    await cluster.whole(patienceMs);
    fromMs = Math.ceil(Date.now() / 1_000) * 1_000 + 2_000;
    await pause(beforeMs);
    const before = await cluster.leader();
    if (!before) throw new Error("nobody leads although nothing is wrong");
    await service.kill();
    const downMs = Date.now();
    await account("before");
    while (Date.now() < downMs + serviceMs) {
      await pause(Math.min(chunkMs, downMs + serviceMs - Date.now()));
      await account("away");
    }
    const meanwhile = (await cluster.terms(before.term)).length;
    const led = (await cluster.leader()) !== undefined;
    await service.up();
    const upMs = Date.now();
    for (const { coordination } of cluster.nodes.values()) coordination?.retarget(service.url);
    await cluster.until("a leader", patienceMs, async () => (await cluster.leader()) !== undefined);
    const leader = await cluster.leader();
    const elected = (await cluster.terms()).find(({ term }) => term === leader?.term);
    await pause(afterMs);
    await cluster.whole(patienceMs);
    await account("back");
    const since = await cluster.terms(before.term + meanwhile);
    const total = (name: "lost" | "doubled" | "due") => spans.reduce((all, { sum }) => all + sum[name], 0);
    const lateness = (what: string) => {
      const all = spans.filter((span) => span.what === what).flatMap(({ sum }) => sum.lateness);
      const { p99_ms = Number.NaN, max_ms = Number.NaN } = latenessFigures(all);
      return { [`p99_ms_${what}`]: p99_ms, [`max_ms_${what}`]: max_ms };
    };
    return {
      away_s: (upMs - downMs) / 1_000,
      slots_due: total("due"),
      lost: total("lost"),
      doubled: total("doubled"),
      ...lateness("before"),
      ...lateness("away"),
      ...lateness("back"),
      // 0 if there was a leader all the time, because the outage was too short to be noticed.
      leader_ms: led ? 0 : (elected?.electedMs ?? Number.NaN) - upMs,
      terms_away: meanwhile,
      terms_after: since.length,
    };
  } finally {
    await cluster.end();
    await service.close();
  }
}

async function withoutStore(): Promise<Figures> {
  const tasks = policies.flatMap((misfire) =>
    Array.from({ length: tasksPerPolicy }, (_, i) => ({ name: `${misfire}-${String(i).padStart(2, "0")}`, misfire })),
  );
  const schema = "bench_outage_store";
  const cluster = new Cluster({ client, storeUrl: url, schema, nodes, tasks, sessionTimeoutMs });
  try {
    await cluster.begin();
    await cluster.whole(patienceMs);
    const fromMs = Math.ceil(Date.now() / 1_000) * 1_000 + 2_000;
    await pause(beforeMs);
    for (const { store } of cluster.nodes.values()) store.refuse();
    const downMs = Date.now();
    await pause(storeMs);
    for (const { store } of cluster.nodes.values()) store.heal();
    const upMs = Date.now();
    await cluster.until("a leader", patienceMs, async () => (await cluster.leader()) !== undefined);
    await cluster.whole(patienceMs);
    const wholeMs = Date.now();
    await pause(5_000);
    const toMs = Math.floor((Date.now() - 2_500) / 1_000) * 1_000;
    const found: Figures = { away_s: (upMs - downMs) / 1_000, all_done_ms: wholeMs - upMs };
    const all: Figures = { slots_due: 0, lost: 0, doubled: 0, invented: 0, planned_before: 0, given_up: 0 };
    for (const policy of policies) {
      const mine = tasks.flatMap(({ name, misfire }, place) => (misfire === policy ? [{ name, place }] : []));
      const span = { fromMs, toMs, downMs, upMs };
      const sum = await sumPolicy({ client, schema, log: cluster.starts }, policy, mine, span);
      faults.push(...sum.faults.slice(0, 3).map((text) => `store, ${policy}: ${text}`));
      progress(`store, ${policy}: ${JSON.stringify({ ...sum, faults: sum.faults.length })}`);
      const counts = { slots_due: sum.due, lost: sum.lost, doubled: sum.doubled, invented: sum.invented };
      for (const [name, value] of Object.entries({
        ...counts,
        planned_before: sum.plannedBefore,
        given_up: sum.givenUp,
      }))
        all[name] = (all[name] ?? 0) + value;
      Object.assign(found, { [`run_${policy}`]: sum.caughtUp, [`recorded_${policy}`]: sum.missed });
    }
    return { ...found, ...all };
  } finally {
    await cluster.end();
  }
}

function progress(text: string): void {
  if (!values.json) console.error(text);
}
