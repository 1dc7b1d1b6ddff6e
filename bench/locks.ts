/**
 * What does a lock cost with many contenders, and does each contender get it?
 *
 *   npm run bench -- locks           2, 16 and 128 contenders on each driver, naive locks and peers
 *   … --party NAME[,NAME]            only these
 *   … --contenders N, --seconds N    one number of contenders; duration of each measurement, default 3 s
 *   … --no-peers, --runs N, --json
 *
 * Contenders are spread over two processes (two contenders) or four. Each acquires the lock, holds it for 1 ms, releases it, and at once
 * tries to acquire it again. The contenders report times on the monotonic clock that all processes of the machine share; the bench compares
 * the spans in which they held the lock, so it detects two holders at once. CPU time is that of the contenders' processes, not of the
 * server.
 *
 * Carillon's locks: postgres (a queue and notifications), zookeeper (a queue and watches), redis-back-off (random pauses, the default on
 * Redis), redis-fair (a queue and messages). naive-spin and naive-sleep are the usual simple lock on one Redis key, which retries at once
 * or after 50 ms. Peers: redlock, redis-semaphore, @microfleet/ioredis-lock and PostgreSQL's advisory locks. npm has no maintained lock on
 * ZooKeeper.
 */
import { type ChildProcess, fork } from "node:child_process";
import { parseArgs } from "node:util";
import pg from "pg";
import type { Contended, Order } from "./locks/order.ts";
import { parties, peerNames } from "./locks/parties.ts";
import { type Figures, percentile, rounded } from "./measure/figures.ts";
import { addPeer, machine, print, type Report, summary } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { serverUrl } from "./measure/services.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "1" },
    seconds: { type: "string", default: "3" },
    contenders: { type: "string" },
    party: { type: "string" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
const [runs, seconds] = [Number(values.runs), Number(values.seconds)];
const sizes = values.contenders === undefined ? [2, 16, 128] : [Number(values.contenders)];
const withPeers = Object.keys(parties).filter((name) => !values["no-peers"] || !peerNames.includes(name));
const chosen = values.party?.split(",") ?? withPeers;
if (
  ![runs, seconds, ...sizes].every((value) => Number.isInteger(value) && value > 0) ||
  chosen.some((name) => !parties[name])
)
  throw new Error(
    `--runs, --seconds and --contenders are whole numbers; --party one of ${Object.keys(parties).join(", ")}`,
  );

const client = new pg.Client({ connectionString: serverUrl("postgres") });
await client.connect();
const report: Report = {
  question: "locks",
  carillon: [],
  peers: {},
  limit: [],
  aims: [],
  machine: machine(await serverTitle(client)),
  notes: [],
};
const isPeer = (name: string) => peerNames.includes(name) || name.startsWith("naive");
let cells = 0;
try {
  for (let run = 1; run <= runs; run++) {
    const figures: Figures = {};
    for (const party of chosen) {
      const own: Figures = {};
      for (const size of sizes) {
        const found = await measure(party, size);
        for (const [name, value] of Object.entries(found))
          (isPeer(party) ? own : figures)[isPeer(party) ? `${name}_${size}` : `${name}_${party}_${size}`] = value;
        const told = Object.entries(found).map(([name, value]) => `${name} ${rounded(value)}`);
        if (!values.json) console.error(`${party}, ${size} contenders: ${told.join(", ")}`);
        if ((found.doubled ?? 0) > 0) fault(party, `${found.doubled} times two of ${size} had it at once`);
      }
      if (isPeer(party)) {
        addPeer(report, party, own);
      }
    }
    report.carillon.push(figures);
  }
} finally {
  await client.end();
}
report.notes.push(sideBySide(report));
print(report, values.json);

/** Returns the figures as a table for each number of contenders, with one line for each kind of lock. */
function sideBySide({ carillon, peers }: Report): string {
  const [ours, theirs] = [summary(carillon), peers];
  const shown = ["per_s", "wait_p50_ms", "wait_p99_ms", "fairness", "cpu_us_per_op"];
  return sizes
    .map((size) => {
      const rows = chosen.map((party) => {
        const of = (name: string) =>
          isPeer(party) ? summary(theirs[party] ?? [])[`${name}_${size}`] : ours[`${name}_${party}_${size}`];
        return [party.padEnd(16), ...shown.map((name) => String(of(name)).padStart(14))].join("");
      });
      const title = `${size} contenders`.padEnd(16) + shown.map((name) => name.padStart(14)).join("");
      return `${title}\n${rows.join("\n")}\n`;
    })
    .join("\n");
}

/** Reports a fault as a note; a fault of one of Carillon's locks also fails the bench. */
function fault(party: string, what: string): void {
  report.notes.push(`${party}: ${what}`);
  if (!isPeer(party)) process.exitCode = 1;
}

async function measure(party: string, size: number): Promise<Figures> {
  const processes = Math.min(size, 4);
  const order: Order = {
    party,
    contenders: size / processes,
    forMs: seconds * 1_000,
    postgres: serverUrl("postgres"),
    zookeeper: serverUrl("zookeeper"),
    redis: serverUrl("redis"),
    name: `bench_locks_${process.pid}_${++cells}`,
  };
  const children: ChildProcess[] = [];
  const start = async () => {
    const child = fork(new URL("./locks/contenders.js", import.meta.url), [JSON.stringify(order)], {
      serialization: "advanced",
      stdio: ["ignore", 2, 2, "ipc"],
    });
    children.push(child);
    await message(child);
  };
  try {
    await start(); // The first process creates the schema and the paths.
    await Promise.all(Array.from({ length: processes - 1 }, start));
    const answers = children.map((child) => message<Contended>(child));
    for (const child of children) child.send("go");
    return figuresOf(await Promise.all(answers));
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await client.query(`drop schema if exists "${order.name}" cascade`);
  }
}

function message<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const exited = (code: number | null, signal: string | null) =>
      reject(new Error(`contenders ended by themselves with ${signal ?? code}`));
    child.once("exit", exited);
    child.once("message", (told) => {
      child.off("exit", exited);
      resolve(told as T);
    });
  });
}

function figuresOf(told: Contended[]): Figures {
  const acquired = told.flatMap((one) => one.acquired);
  const all = acquired.reduce((a, b) => a + b, 0);
  const waits = told.flatMap((one) => one.waitMs).sort((a, b) => a - b);
  const squares = acquired.reduce((sum, one) => sum + one * one, 0);
  const holds = told
    .flatMap(({ heldNs }) => Array.from({ length: heldNs.length / 2 }, (_, i) => heldNs.subarray(2 * i, 2 * i + 2)))
    .sort(([a = 0n], [b = 0n]) => Number(a - b));
  let [doubled, latest] = [0, 0n];
  for (const [from = 0n, to = 0n] of holds) {
    if (from < latest) doubled++;
    if (to > latest) latest = to;
  }
  return {
    per_s: all / seconds,
    wait_p50_ms: percentile(waits, 0.5),
    wait_p99_ms: percentile(waits, 0.99),
    wait_max_ms: percentile(waits, 1),
    fairness: squares === 0 ? 0 : (all * all) / (acquired.length * squares),
    starved: acquired.filter((one) => one === 0).length,
    cpu_us_per_op: told.reduce((sum, { cpuUs }) => sum + cpuUs, 0) / Math.max(all, 1),
    doubled,
  };
}
