/**
 * What do alarm rules and statistics cost, and how long does it take to read the metrics of a cluster with many tasks?
 *
 *   npm run bench -- watching        a backlog of 60,000 runs, five pairs with and without; 10 scrapes beside 10,000 tasks
 *   … --quick                        2,000 runs, one pair, 2 scrapes, to check that the bench works
 *   … --count N, --pairs N, --tasks N, --scrapes N, --json
 *
 * One process executes the backlog of the bench `drain`, in pairs: once with alarm rules and statistics, once without, in changing order.
 * "With" means: a channel, so that the leader evaluates all rules of the settings; one stored rule of each kind; and the statistics of
 * ended runs added each second (by default: every five minutes). `cost_share` is the median, over the pairs, of the share of the rate that
 * is lost. Each run must be handled once, the statistics must have all of them, and the rules must have been evaluated.
 *
 * A server in its own process is scraped over HTTP. It caches what it read from the store for 5 s, so a scrape after a longer pause
 * (`cold`) reads the store, and a scrape right after that one does not.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { carillon, defineTask } from "carillon";
import pg from "pg";
import { Arena } from "./contest/arena.ts";
import { monotonicMs } from "./contest/clock.ts";
import { accounted, first, notesOf } from "./contest/notes.ts";
import { makeToken } from "./lists/token.ts";
import { type Figures, median } from "./measure/figures.ts";
import { openPostgres, releaseOf } from "./measure/internals.ts";
import { freePort } from "./measure/port.ts";
import { type Aim, machine, newReport, print } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { serverUrl } from "./measure/services.ts";
import { Subject } from "./measure/subject.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string" },
    pairs: { type: "string" },
    tasks: { type: "string", default: "10000" },
    scrapes: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
if (values.peers) throw new Error("this question has no peers");
const [usual, quick] = [
  { count: "60000", pairs: "5", scrapes: "10" },
  { count: "2000", pairs: "1", scrapes: "2" },
];
const { tasks, ...sizes } = { ...(values.quick ? quick : usual), ...values };
const [count, pairs, taskCount, scrapes] = [sizes.count, sizes.pairs, tasks, sizes.scrapes].map(Number) as [
  number,
  number,
  number,
  number,
];
if (![count, pairs, taskCount, scrapes].every((value) => Number.isInteger(value) && value > 0))
  throw new Error("--count, --pairs, --tasks and --scrapes are whole numbers above 0");

const batch = 2_000;
const addEveryMs = 1_000;
/** How long a server keeps the figures that it has read for scrapes, in ms. */
const figuresKeptMs = 5_000;
const change = { author: "bench", reason: "", nowMs: 0 };
const aims: Aim[] = [
  { figure: "cost_share", atMost: 0.03 },
  { figure: "scrape_cold_most_ms", atMost: 100 },
];
const url = serverUrl("postgres");
const sql = new pg.Client({ connectionString: url });
await sql.connect();
const report = newReport("watching", aims, machine(await serverTitle(sql)));
try {
  const shares: number[] = [];
  const rates: Record<"with" | "without", Figures[]> = { with: [], without: [] };
  for (let pair = 0; pair < pairs; pair++) {
    const order = pair % 2 === 0 ? (["without", "with"] as const) : (["with", "without"] as const);
    for (const which of order) rates[which].push(await drained(which === "with"));
    const [watched, plain] = [rates.with, rates.without].map((all) => all.at(-1)?.per_s ?? Number.NaN) as [
      number,
      number,
    ];
    shares.push(1 - watched / plain);
  }
  const all = [...rates.with, ...rates.without];
  report.carillon.push({
    cost_share: median(shares),
    cost_share_least: Math.min(...shares),
    cost_share_most: Math.max(...shares),
    per_s_watched: median(rates.with.map(({ per_s }) => per_s as number)),
    per_s: median(rates.without.map(({ per_s }) => per_s as number)),
    cpu_us_per_op_watched: median(rates.with.map(({ cpu }) => cpu as number)),
    cpu_us_per_op: median(rates.without.map(({ cpu }) => cpu as number)),
    lost: Math.max(...all.map(({ lost }) => lost as number)),
    doubled: Math.max(...all.map(({ doubled }) => doubled as number)),
    ...(await scraped()),
  });
} finally {
  await sql.end();
}
print(report, values.json);

async function drained(watched: boolean): Promise<Figures> {
  const arena = await Arena.open({ who: "carillon", profile: "many", alarms: watched });
  try {
    const adds = await arena.enter("adds");
    await adds.ask("add", { from: 0, count, batch });
    await adds.stop();
    const watching = watched ? await watch(arena.url) : undefined;
    const worker = await arena.enter("runs");
    await worker.ask("work");
    await arena.handled([worker], count);
    await arena.acknowledged();
    const doneMs = monotonicMs();
    await watching?.stop();
    const usage = await worker.ask("usage");
    const notes = await notesOf([worker]);
    await worker.stop();
    if (watched) await requireWatched(arena);
    return {
      per_s: (count * 1_000) / (doneMs - first(notes)),
      cpu: usage.cpuUs / count,
      ...accounted(notes, 0, count),
    };
  } finally {
    await arena.close();
  }
}

/** Creates a rule of each kind, and adds the statistics of ended runs once a second, as the leader does less often. */
async function watch(database: string): Promise<{ stop(): Promise<void> }> {
  const store = await openPostgres({ url: database, schema: "carillon" });
  const rules = [
    { kind: "failed", failures: 1 },
    { kind: "slow" },
    { kind: "quick" },
    { kind: "deadline", by: "06:00", zone: "UTC" },
    { kind: "unfired" },
    { kind: "overdue", after: "1h" },
    { kind: "stuck" },
    { kind: "paused" },
    { kind: "ended" },
    { kind: "unserved", after: "1h" },
    { kind: "queue", more: 1_000_000, grows: 1_000_000, within: "1m" },
    { kind: "changed" },
    ...(["store", "snapshot", "coordination", "expiring"] as const).map((kind) => ({
      kind,
      scope: { everywhere: true },
    })),
  ] as const;
  for (const rule of rules) await store.alarms.createRule(`watch-${rule.kind}`, rule, change);
  let isOver = false;
  const adding = (async () => {
    for (;;) {
      const last = isOver;
      const { ms } = await store.clock();
      // The first call looks far back, so further calls follow until it has come to the present.
      for (let at = 0; at < Math.floor(ms); ) at = await store.statistics.addTimes(Math.floor(ms), 3_600_000);
      if (last) return;
      await pause(addEveryMs);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await adding;
      await store.close();
    },
  };
}

/** @throws if the statistics lack runs, or the alarm rules were not evaluated */
async function requireWatched({ client }: Arena): Promise<void> {
  const { rows } = await client.query(
    `select (select coalesce(sum(runs), 0) from carillon.task_times)::int as added,
            (select count(*) from carillon.alarm_seen)::int as looks, (select count(*) from carillon.alarm_rule_seen)::int as follows`,
  );
  const { added, looks, follows } = rows[0] as { added: number; looks: number; follows: number };
  if (added < count) throw new Error(`the statistics have ${added} of ${count} runs`);
  if (looks === 0 || follows === 0) throw new Error("the alarm rules were not evaluated");
}

async function scraped(): Promise<Figures> {
  const schema = `bench_watching_${process.pid}`;
  const tower = carillon({ store: url, schema, scheduler: false, worker: false, handleSignals: false });
  let server: Subject | undefined;
  try {
    const { store, nowMs } = await tower.open();
    const definitions = Array.from({ length: taskCount }, (_, n) =>
      defineTask(`team-${n % 50}/task-${n}`, { group: `team-${n % 50}/group-${n % 200}` }),
    );
    const by = { release: releaseOf("1", definitions), graceMs: 60_000 };
    await store.tasks.saveAll(definitions, { ...change, nowMs: nowMs() }, by);
    await sql.query(
      `insert into "${schema}".tally_delta (task_id, succeeded, failed) select id, 3, 1 from "${schema}".task`,
    );
    const port = await freePort();
    server = new Subject(new URL("./remote/server.js", import.meta.url), { url, schema, port });
    await server.started(120_000);
    const headers = { authorization: `Bearer ${await makeToken(tower)}` };
    const scrape = async () => {
      const beganMs = performance.now();
      const response = await fetch(`http://127.0.0.1:${port}/metrics`, { headers });
      const text = await response.text();
      const ms = performance.now() - beganMs;
      if (response.status !== 200 || !text.includes("carillon_ended_total"))
        throw new Error(`/metrics answered ${response.status}: ${text.slice(0, 300)}`);
      return { ms, bytes: text.length };
    };
    const cold: number[] = [];
    const warm: number[] = [];
    // The first request opens connections and compiles code.
    let { bytes } = await scrape();
    for (let n = 0; n < scrapes; n++) {
      await pause(figuresKeptMs + 100);
      const read = await scrape();
      bytes = read.bytes;
      cold.push(read.ms);
      warm.push((await scrape()).ms);
    }
    await server.stop();
    return {
      scrape_cold_ms: median(cold),
      scrape_cold_most_ms: Math.max(...cold),
      scrape_warm_ms: median(warm),
      scrape_bytes: bytes,
    };
  } finally {
    server?.kill();
    await tower.stop();
    await sql.query(`drop schema if exists "${schema}" cascade`);
  }
}
