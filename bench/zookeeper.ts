/**
 * How many operations a second does the ZooKeeper client execute, what do they cost its process, and how long does one call take?
 *
 *   npm run bench -- zookeeper              three runs of creates, gets and sets of 100 B by Carillon's client, the two
 *                                           clients that npm has, and Java's
 *   … --operations 20000                    fewer operations of each kind
 *   … --no-peers, --runs N, --json
 *
 * Each client executes each kind of operation in a fresh process, the clients in turn: first with 1,000 concurrent requests, then with one
 * (suffix `_window_1`). CPU time is that of all threads of the client's process, after a warm-up. The bench checks with the server that the
 * work was done: the number of nodes, their size and version, and the packets or bytes that the server received.
 */
import { parseArgs } from "node:util";
import { connect } from "@carillon/zookeeper";
import { type Figures, rounded, suffixed } from "./measure/figures.ts";
import { type Aim, machine, print, type Report } from "./measure/report.ts";
import { type Contestant, javaClient, nodeClient } from "./zookeeper/contestant.ts";
import { type Operation, type Order, type Outcome, operations } from "./zookeeper/order.ts";
import { type Counters, counters, sum } from "./zookeeper/server.ts";

const npmPeers = ["node-zookeeper-client", "zookeeper"] as const;
const aims: Aim[] = operations.flatMap((operation) => [
  { figure: `of_best_npm_${operation}`, atLeast: 1.5 },
  { figure: `of_java_${operation}`, atLeast: 1 },
  { figure: `cpu_us_per_op_${operation}`, atMost: 10 },
  { figure: `of_java_${operation}_window_1`, atLeast: 0.9 },
]);
const bytes = 100;
/** How much of --operations is executed when measuring one request at a time; few writes, because each waits for the disk. */
const share: Record<Operation, number> = { creates: 1 / 15, gets: 1 / 3, sets: 1 / 15 };
const faultsShown = 5;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "3" },
    operations: { type: "string", default: "60000" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
const [runs, count] = [Number(values.runs), Number(values.operations)];
if (!Number.isInteger(runs) || runs < 1) throw new Error(`--runs must be a whole number above 0, not ${values.runs}`);
if (!Number.isInteger(count) || count < 1_000)
  throw new Error(`--operations must be a whole number from 1000 on, not ${values.operations}`);
const url = process.env.CARILLON_BENCH_ZOOKEEPER_URL ?? "";
if (url === "") throw new Error("CARILLON_BENCH_ZOOKEEPER_URL is not set; start this by `npm run bench -- zookeeper`");

const notes: string[] = [];
const peers = values["no-peers"] ? [] : await findPeers();
const contestants: Contestant[] = [nodeClient("carillon"), ...peers];
const report: Report = {
  question: "zookeeper",
  carillon: [],
  peers: Object.fromEntries(peers.map(({ name }) => [name, []])),
  limit: [],
  aims: values["no-peers"] ? aims.filter(({ figure }) => !figure.startsWith("of_")) : aims,
  machine: machine(
    `${process.env.CARILLON_TEST_ZOOKEEPER_TITLE ?? "ZooKeeper"} at ${url}, one server, fsync as it is set`,
  ),
  notes,
};
const faults: string[] = [];

const zk = await connect(url, { sessionTimeoutMs: 60_000 });
try {
  await warmUpServer();
  for (let run = 1; run <= runs; run++) {
    const figures = await measure(run);
    for (const [name, found] of figures) (name === "carillon" ? report.carillon : report.peers[name])?.push(found);
  }
} finally {
  await zk.close();
}
notes.push(
  faults.length === 0
    ? "The server's own counts agree: every node was made once with its bytes, every set changed its node, every get came."
    : `IT DOES NOT ADD UP\n  ${faults.slice(0, faultsShown).join("\n  ")}`,
);
if (faults.length > 0) {
  process.exitCode = 1;
  if (values.json) console.error(faults.join("\n"));
}
print(report, values.json);

/**
 * Returns the clients of npm that are installed, and Java's client; adds a note with the reason for each missing client of npm.
 * @throws if Java's client cannot be compiled
 */
async function findPeers(): Promise<Contestant[]> {
  const found: Contestant[] = [];
  for (const name of npmPeers) {
    const missing = process.env[`CARILLON_BENCH_WITHOUT_${name.replaceAll("-", "_").toUpperCase()}`];
    if (missing === undefined) found.push(nodeClient(name));
    else notes.push(`Without the peer ${name}: ${missing}`);
  }
  return [...found, await javaClient()];
}

/** Executes operations that are not measured, so that the server's JVM has compiled its code before the first client is measured. */
async function warmUpServer(): Promise<void> {
  const path = `/bench-${process.pid}-warm-up`;
  await zk.create(path);
  await each(count, async (number) => {
    const node = `${path}/${number}`;
    await zk.create(node, Buffer.alloc(bytes, "x"));
    await zk.set(node, (await zk.get(node)).data);
  });
  await remove(path);
}

/** Measures every client once, in turn; each run begins with a different client. */
async function measure(run: number): Promise<Map<string, Figures>> {
  const figures = new Map(contestants.map(({ name }) => [name, {} as Figures]));
  const order = contestants.map((_, i) => contestants[(i + run - 1) % contestants.length] as Contestant);
  const paths: string[] = [];
  for (const window of [1_000, 1]) {
    for (const operation of operations) {
      for (const contestant of order) {
        // Gets and sets with one request at a time use the nodes of the earlier part with 1,000 concurrent requests.
        const path = `/bench-${process.pid}-${run}-${contestant.name}${operation === "creates" ? `-${window}` : "-1000"}`;
        if (operation === "creates") {
          await zk.create(path);
          paths.push(path);
        }
        const some = window === 1 ? Math.ceil(count * share[operation]) : count;
        const warmUp = Math.ceil(some / 3);
        const work = { url, path, operation, window, count: some, warmUp, bytes };
        const before = await counters(url);
        const outcome = await contestant.run(work);
        await check(contestant.name, work, before, await counters(url));
        Object.assign(figures.get(contestant.name) as Figures, named(outcome, operation, window));
        progress(`run ${run} of ${runs}, window ${window}, ${operation}, ${contestant.name}`, outcome);
      }
    }
  }
  for (const path of paths) await remove(path);
  compare(figures);
  return figures;
}

/** Checks that the work was done, by the server's counts and the nodes' own versions. */
async function check(
  who: string,
  { path, operation, window, count, warmUp }: Omit<Order, "client">,
  before: Counters[],
  after: Counters[],
): Promise<void> {
  const total = count + warmUp;
  const change = (name: string) => sum(after, name) - sum(before, name);
  const problem = (what: string) => faults.push(`${who}, ${operation}, window ${window}: ${what}`);
  // For gets, packets are not counted, because the client may send several requests in one packet; but each request contains its node's
  // path.
  const asked = operation === "gets" ? "bytes_received_count" : "packets_received";
  const least = operation === "gets" ? total * Buffer.byteLength(`${path}/`) : total;
  if (change(asked) < least) problem(`the server's ${asked} rose by ${change(asked)} for ${total} requests`);
  const nodes = operation === "creates" ? total : 0;
  if (change("znode_count") !== nodes) problem(`${change("znode_count")} nodes came to be instead of ${nodes}`);
  if (operation === "gets") return;
  const version = operation === "creates" ? 0 : window === 1 ? 2 : 1;
  let wrong = 0;
  await each(total, async (number) => {
    const stat = await zk.exists(`${path}/${number}`);
    if (stat?.dataLength !== bytes || stat.version !== version) wrong++;
  });
  if (wrong > 0) problem(`${wrong} of ${total} nodes are missing, or not of version ${version} with ${bytes} bytes`);
}

function named({ perSecond, cpuUsPerOperation, p50Us, p99Us }: Outcome, operation: Operation, window: number): Figures {
  const suffix = window === 1 ? `_${operation}_window_1` : `_${operation}`;
  return suffixed(
    {
      per_s: perSecond,
      cpu_us_per_op: cpuUsPerOperation,
      ...(p50Us === undefined ? {} : { p50_ms: p50Us / 1_000 }),
      ...(p99Us === undefined ? {} : { p99_ms: p99Us / 1_000 }),
    },
    suffix,
  );
}

/**
 * Adds to Carillon's figures of one run the ratios of Carillon's rates to those of the fastest npm client and of Java's client.
 */
function compare(figures: Map<string, Figures>): void {
  const ours = figures.get("carillon") as Figures;
  const rate = (who: string, what: string) => figures.get(who)?.[`per_s_${what}`];
  for (const what of operations.flatMap((operation) => [operation, `${operation}_window_1`])) {
    const npm = npmPeers.flatMap((name) => rate(name, what) ?? []);
    const java = rate("java", what);
    const own = rate("carillon", what) as number;
    if (npm.length > 0) ours[`of_best_npm_${what}`] = own / Math.max(...npm);
    if (java !== undefined) ours[`of_java_${what}`] = own / java;
  }
}

async function remove(path: string): Promise<void> {
  const { names } = await zk.children(path);
  const atOnce = 500;
  await each(Math.ceil(names.length / atOnce), (batch) =>
    zk.multi(
      names
        .slice(batch * atOnce, (batch + 1) * atOnce)
        .map((name) => ({ type: "delete" as const, path: `${path}/${name}` })),
    ),
  );
  await zk.delete(path);
}

/** Calls `work` with 0 … count − 1, at most a thousand calls at once; resolves when all have ended. */
async function each(count: number, work: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(count, 1_000) }, lane));
}

function progress(who: string, { perSecond, cpuUsPerOperation, p50Us, p99Us }: Outcome): void {
  if (values.json) return;
  const alone = p50Us === undefined || p99Us === undefined ? "" : `, p50 ${rounded(p50Us)} p99 ${rounded(p99Us)} µs`;
  console.error(`${who}: ${Math.round(perSecond)} per s, ${rounded(cpuUsPerOperation)} µs of processor each${alone}`);
}
