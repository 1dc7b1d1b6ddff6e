/**
 * How many queries and requests does Carillon send while there is nothing to do?
 *
 *   npm run bench -- idle            1 and 3 nodes on each driver, 60 s each, defaults, one task that is due once a year
 *   … --seconds N, --driver postgres|zookeeper|redis, --nodes N, --runs N, --json
 *
 * The store counts statements (pg_stat_statements) of the whole cluster. The coordination service counts requests (packets that ZooKeeper
 * received, scripts and pings that Redis received); the figure is their number divided by the number of nodes. CPU time and memory are
 * those of the node with the highest value. Figures carry the driver and the number of nodes: `statements_per_s_zookeeper_3`. Peers: see
 * idle/peers.ts; `--no-peers` omits them.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";
import type { Order } from "./idle/node.ts";
import { idlePeers } from "./idle/peers.ts";
import { type Figures, rounded, suffixed } from "./measure/figures.ts";
import { type Aim, addPeer, machine, print, type Report } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { coordinationUrl, type Driver, drivers, requests, serverUrl } from "./measure/services.ts";
import { StatementCount } from "./measure/statements.ts";
import { Subject } from "./measure/subject.ts";

/** The time in ms from the last start to the measurement, so that the queries of the start and of the first election are not counted. */
const settleMs = 15_000;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "1" },
    seconds: { type: "string", default: "60" },
    driver: { type: "string" },
    nodes: { type: "string" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
const [runs, seconds] = [Number(values.runs), Number(values.seconds)];
const chosen = drivers.filter((driver) => values.driver === undefined || values.driver === driver);
const sizes = values.nodes === undefined ? [1, 3] : [Number(values.nodes)];
if (chosen.length === 0 || ![runs, seconds, ...sizes].every((value) => Number.isInteger(value) && value > 0))
  throw new Error("--driver is postgres, zookeeper or redis; --runs, --seconds and --nodes are whole numbers above 0");

const aims: Aim[] = chosen.flatMap((driver) => [
  { figure: `statements_per_s_${driver}_1`, atMost: 0.3 },
  { figure: `statements_per_s_${driver}_3`, atMost: 1 },
  ...(driver === "postgres" ? [] : [{ figure: `requests_per_s_${driver}_3`, atMost: 1 }]),
]);
const client = new pg.Client({ connectionString: serverUrl("postgres") });
await client.connect();
const statements = await StatementCount.on(client);
if (!statements.counts) throw new Error("the server counts no statements: pg_stat_statements is not loaded");
const report: Report = {
  question: "idle",
  carillon: [],
  peers: {},
  limit: [],
  aims: aims.filter(({ figure }) => sizes.some((size) => figure.endsWith(`_${size}`))),
  machine: machine(await serverTitle(client)),
  notes: [],
};
try {
  for (let run = 1; run <= runs; run++) {
    const figures: Figures = {};
    for (const driver of chosen) {
      for (const size of sizes) {
        const found = await measure(driver, size, `bench_idle_${process.pid}_${run}_${driver}_${size}`);
        Object.assign(figures, suffixed(found, `_${driver}_${size}`));
        const told = Object.entries(found).map(([name, value]) => `${name} ${rounded(value)}`);
        if (!values.json) console.error(`${driver}, ${size} nodes: ${told.join(", ")}`);
      }
    }
    report.carillon.push(figures);
    const peers = values["no-peers"] ? {} : await idlePeers(seconds);
    for (const [who, found] of Object.entries(peers)) {
      addPeer(report, who, found);
      if (!values.json) console.error(`${who}: ${JSON.stringify(found)}`);
    }
  }
} finally {
  await client.end();
}
print(report, values.json);

async function measure(driver: Driver, size: number, schema: string): Promise<Figures> {
  const order: Order = { url: serverUrl("postgres"), schema, coordination: coordinationUrl(driver, schema) };
  const nodes: Subject[] = [];
  try {
    for (let node = 0; node < size; node++) {
      const subject = new Subject(new URL("./idle/node.js", import.meta.url), order);
      nodes.push(subject);
      await subject.started(60_000);
    }
    await pause(settleMs);
    // Two readings in a row show how many requests a reading itself adds.
    const [quiet, before] = [await requests(driver), await requests(driver)];
    const cpuBefore = await Promise.all(nodes.map((node) => node.usage()));
    const executed = await statements.soFar();
    const began = performance.now();
    await pause(seconds * 1_000);
    const tookS = (performance.now() - began) / 1_000;
    const asked = (await requests(driver)) - before - (before - quiet);
    const usage = await Promise.all(nodes.map((node) => node.usage()));
    const found: Figures = {
      statements_per_s: ((await statements.soFar()) - executed - 1) / tookS,
      ...(driver === "postgres" ? {} : { requests_per_s: asked / tookS / size }),
      cpu_ms_per_s: Math.max(...usage.map(({ cpuUs }, i) => cpuUs - (cpuBefore[i]?.cpuUs ?? 0))) / 1_000 / tookS,
      rss_mb: Math.max(...usage.map(({ rssBytes }) => rssBytes)) / 2 ** 20,
    };
    const { rows } = await client.query(
      `select (select count(*) from "${schema}".session where ended_ms is null)::int as live,
              (select session_id from "${schema}".leadership) is not null as led`,
    );
    if (rows[0]?.live !== size || rows[0]?.led !== true)
      throw new Error(`what was measured is no cluster of ${size} with a leader: ${JSON.stringify(rows[0])}`);
    await Promise.all(nodes.map((node) => node.stop()));
    return found;
  } finally {
    for (const node of nodes) node.kill();
    await client.query(`drop schema if exists "${schema}" cascade`);
  }
}
