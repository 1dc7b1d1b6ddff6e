/**
 * How long is there no leader, and are there ever two?
 *
 *   npm run bench -- election               three servers, three candidates in processes of their own, Java Curator in turn
 *   … --hand-overs N, --kills N, --stops N  how often a leader closes, is killed with -9, or is stopped (SIGSTOP) until another
 *                                           candidate leads and is then continued (SIGCONT)
 *   … --contenders N                        at most this many contenders for one lock
 *   … --no-peers, --runs N, --json
 *
 * The candidates report times on the monotonic clock that all processes of the machine share: from the call of `close`, or the kill, to
 * the call of the next leader's listener. A stopped leader records every millisecond whether it still believes that it leads. Sessions last
 * 5 s; the servers end them on ticks of 250 ms.
 *
 * Then 10, 100 and 1,000 sessions request one lock (suffixes `_10`, `_100`, `_1000`). The bench measures the number of sessions that a
 * release wakes, and the number of requests of each acquisition, as the servers count them.
 */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { connect } from "@carillon/zookeeper";
import { type Candidacy, Candidate } from "./election/candidate.ts";
import { contention } from "./election/contention.ts";
import { Election, electionFigures, type Start } from "./election/hand-over.ts";
import { type Figures, rounded, suffixed } from "./measure/figures.ts";
import { type Aim, machine, print, type Report } from "./measure/report.ts";

const sessionTimeoutMs = 5_000;
const candidates = 3;
const sizes = [10, 100, 1_000];
const aims: Aim[] = [
  { figure: "hand_over_p50_ms", atMost: 30 },
  { figure: "after_kill_max_ms", atMost: sessionTimeoutMs + 500 },
  { figure: "believes_after_stop_max_ms", atMost: 0 },
  ...sizes.map((size) => ({ figure: `waiters_woken_max_${size}`, atMost: 1 })),
  { figure: "requests_growth", atMost: 1.1 },
];
const faultsShown = 5;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "3" },
    "hand-overs": { type: "string", default: "30" },
    kills: { type: "string", default: "3" },
    stops: { type: "string", default: "3" },
    contenders: { type: "string", default: "1000" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
const whole = (name: "runs" | "hand-overs" | "kills" | "stops" | "contenders"): number => {
  const value = Number(values[name]);
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`--${name} must be a whole number above 0, not ${values[name]}`);
  return value;
};
const [runs, handOvers, kills, stops, most] = [
  whole("runs"),
  whole("hand-overs"),
  whole("kills"),
  whole("stops"),
  whole("contenders"),
];
const url = process.env.CARILLON_BENCH_ZOOKEEPER_URL ?? "";
if (url === "") throw new Error("CARILLON_BENCH_ZOOKEEPER_URL is not set; start this by `npm run bench -- election`");

const startCarillon =
  (path: string): Start =>
  (id) => {
    const program = fileURLToPath(new URL("./election/latch.js", import.meta.url));
    return new Candidate(id, [
      process.execPath,
      program,
      JSON.stringify({ url, path, id, sessionTimeoutMs } satisfies Candidacy),
    ]);
  };
const parties: { name: string; start: (path: string) => Start }[] = [{ name: "carillon", start: startCarillon }];
if (!values["no-peers"]) parties.push({ name: "curator", start: await curator() });

const report: Report = {
  question: "election",
  carillon: [],
  peers: values["no-peers"] ? {} : { curator: [] },
  limit: [],
  aims: aims.filter(({ figure }) => most >= 1_000 || !figure.endsWith("_1000")),
  machine: machine(
    `${process.env.CARILLON_TEST_ZOOKEEPER_TITLE ?? "ZooKeeper"} at ${url}, ${url.split(",").length} servers, fsync as it is set`,
  ),
  notes: [],
};
const faults: string[] = [];
for (let run = 1; run <= runs; run++) {
  const order = run % 2 === 1 ? parties : parties.toReversed();
  for (const { name, start } of order) {
    const figures = await elect(name, start(`/bench-${process.pid}-${run}-${name}`));
    (name === "carillon" ? report.carillon : report.peers[name])?.push(figures);
  }
  Object.assign(report.carillon[run - 1] as Figures, await contend());
}
report.notes.push(
  faults.length === 0
    ? "One leader at a time after each hand-over, kill and stop; the lock had one holder at a time; all fences went up."
    : `IT DOES NOT ADD UP\n  ${faults.slice(0, faultsShown).join("\n  ")}`,
);
if (faults.length > 0) {
  process.exitCode = 1;
  if (values.json) console.error(faults.join("\n"));
}
print(report, values.json);

async function elect(name: string, start: Start): Promise<Figures> {
  const election = new Election(start);
  try {
    await election.begin(candidates);
    const given = await election.handOver(handOvers);
    progress(`${name}, ${given.length} hand-overs: ${given.map((ms) => rounded(ms)).join(" ")} ms`);
    const killed = await election.kill(kills);
    progress(`${name}, killed: ${killed.map((ms) => Math.round(ms)).join(" ")} ms`);
    const believed = await election.stop(stops);
    progress(`${name}, stopped, still believed: ${believed.map((ms) => rounded(ms)).join(" ")} ms`);
    return electionFigures(given, killed, believed);
  } finally {
    await election.end();
    // A peer's fault is reported as a note; only Carillon's faults fail the bench.
    if (name === "carillon") faults.push(...election.faults);
    else report.notes.push(...election.faults.map((fault) => `${name}: ${fault}`));
  }
}

async function contend(): Promise<Figures> {
  const zk = await connect(url, { sessionTimeoutMs: 60_000 });
  const figures: Figures = {};
  try {
    const measured = sizes.filter((size) => size <= most);
    for (const size of measured) {
      const found = await contention(zk, url, size, faults);
      Object.assign(figures, suffixed(found, `_${size}`));
      progress(
        `${size} contenders: ${rounded(found.requests_per_acquisition ?? Number.NaN)} requests for each acquisition`,
      );
    }
    const [least, largest] = [measured[0], measured.at(-1)].map((size) => figures[`requests_per_acquisition_${size}`]);
    if (least !== undefined && largest !== undefined) figures.requests_growth = largest / least;
  } finally {
    await zk.close();
  }
  return figures;
}

async function curator(): Promise<(path: string) => Start> {
  const told = (variable: string) => {
    const value = process.env[variable];
    if (value) return value;
    throw new Error(`${variable} is not set: install Java Curator, start this by \`npm run bench\`, or say --no-peers`);
  };
  const [java, jars] = [told("CARILLON_TEST_ZOOKEEPER_JAVA"), told("CARILLON_TEST_ZOOKEEPER_CURATOR_CLASSPATH")];
  const source = fileURLToPath(new URL("../election/java/Latch.java", import.meta.url));
  const classes = fileURLToPath(new URL("./election/java", import.meta.url));
  mkdirSync(classes, { recursive: true });
  await promisify(execFile)(join(java, "javac"), ["-nowarn", "-d", classes, "-cp", jars, source]);
  const settings = ["-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", `${classes}:${jars}`];
  return (path) => (id) =>
    new Candidate(id, [join(java, "java"), ...settings, "Latch", url, path, id, String(sessionTimeoutMs)]);
}

function progress(text: string): void {
  if (!values.json) console.error(text);
}
