/**
 * Does Carillon run recurring tasks on time, and is every slot accounted for?
 *
 *   npm run bench -- steady                 both parts, three runs
 *   npm run bench -- steady --part second   1,000 tasks every second for 60 s, one process
 *   npm run bench -- steady --part minute   10,000 tasks at one minute's start, one process
 *   … --spread                              also 1,000 tasks a second, each due at its own millisecond
 *   … --seconds N, --tasks N                a shorter or smaller `second` part
 *
 * Each run uses a fresh process and a fresh schema, with Carillon's defaults. The bench computes the due slots itself. The outcomes are
 * read from the handlers' own records and, after the process has ended, from the store's tables.
 */
import { loadavg } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";
import { type Account, account, type DueSlot } from "./measure/account.ts";
import { type Figures, latenessFigures, rounded, suffixed } from "./measure/figures.ts";
import { type Aim, machine, newReport, print } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { StatementCount } from "./measure/statements.ts";
import { Subject, type Usage } from "./measure/subject.ts";
import { type Kind, type Order, periodMs, phaseMs, taskName } from "./steady/order.ts";

interface Part {
  kind: Kind;
  tasks: number;
  /** The number of measured slots of each task. */
  rounds: number;
  suffix: string;
}

const aims: Aim[] = [
  { figure: "p99_ms", atMost: 20 },
  { figure: "last_start_ms_10k", atMost: 200 },
];
/** The time in ms from the start to the first measured slot, so that the planning at the start is not measured. */
const settleMs = 4_000;
/** The possible error of the estimate of the store's clock, in ms; a run is early only if it starts earlier than this before its slot. */
const clockErrorMs = 1;
const faultsShown = 5;

const whole = (name: string, text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number above 0, not ${text}`);
  return value;
};

function read() {
  const { values } = parseArgs({
    options: {
      runs: { type: "string", default: "3" },
      seconds: { type: "string", default: "60" },
      tasks: { type: "string", default: "1000" },
      part: { type: "string", default: "both" },
      spread: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      peers: { type: "boolean", default: false },
      "no-peers": { type: "boolean", default: false },
    },
  });
  if (values.peers) throw new Error("this question has no peers yet: --peers can be asked for where there are some");
  if (!["both", "second", "minute"].includes(values.part)) throw new Error("--part is both, second or minute");
  const second = { tasks: whole("tasks", values.tasks), rounds: whole("seconds", values.seconds) };
  const parts: Part[] = [];
  if (values.part !== "minute") parts.push({ kind: "second", ...second, suffix: "" });
  if (values.spread) parts.push({ kind: "spread", ...second, suffix: "_spread" });
  if (values.part !== "second") parts.push({ kind: "minute", tasks: 10_000, rounds: 1, suffix: "_10k" });
  return { runs: whole("runs", values.runs), parts, json: values.json };
}

const url = process.env.CARILLON_BENCH_POSTGRES_URL ?? "";
if (url === "") throw new Error("CARILLON_BENCH_POSTGRES_URL is not set; start this by `npm run bench -- steady`");
const { runs, parts, json } = read();
const client = new pg.Client({ connectionString: url });
await client.connect();
const statements = await StatementCount.on(client);

const report = newReport("steady", aims, machine(await serverTitle(client)));
if (!statements.counts) report.notes.push("The server counts no statements: pg_stat_statements is not loaded.");
const faults: string[] = [];
try {
  for (const { kind, tasks, suffix } of parts) {
    if (kind !== "spread") report.limit.push(suffixed(await bare(tasks), suffix));
  }
  report.limit = [Object.assign({}, ...report.limit)];
  for (let run = 1; run <= runs; run++) {
    const figures: Figures = {};
    for (const part of parts) {
      const { figures: found, sum } = await measure(part, run);
      Object.assign(figures, suffixed(found, part.suffix));
      if (sum.lost + sum.doubled > 0 || sum.faults.length > 0) {
        faults.push(
          `run ${run}, ${part.kind}: ${sum.lost} lost, ${sum.doubled} doubled`,
          ...sum.faults.slice(0, faultsShown),
        );
      }
      progress(`run ${run} of ${runs}, ${part.kind}: ${line(found)}`);
    }
    report.carillon.push(figures);
  }
} finally {
  await client.end();
}
report.notes.push(
  faults.length === 0
    ? "Every slot was held against three witnesses (handler's note, ledger, history), and the counters against the history: all agree."
    : `IT DOES NOT ADD UP\n  ${faults.join("\n  ")}`,
);
if (faults.length > 0) {
  process.exitCode = 1;
  if (json) console.error(faults.join("\n"));
}
print(report, json);

/** Measures `rounds` periods in a fresh process, and compares the outcomes with the due slots. */
async function measure(part: Part, run: number): Promise<{ figures: Figures; sum: Account }> {
  const { kind, tasks, rounds } = part;
  const schema = `bench_steady_${kind}_${run}`;
  await client.query(`drop schema if exists "${schema}" cascade`);
  const subject = new Subject(new URL("./steady/subject.js", import.meta.url), {
    kind,
    tasks,
    url,
    schema,
  } satisfies Order);
  try {
    const began = performance.now();
    await subject.started(300_000);
    const setupMs = performance.now() - began;
    const period = periodMs[kind];
    const firstMs = Math.ceil((Date.now() + settleMs) / period) * period;
    const due: DueSlot[] = [];
    for (let round = 0; round < rounds; round++) {
      for (let task = 0; task < tasks; task++)
        due.push({ task, slotMs: firstMs + round * period + phaseMs(kind, task) });
    }
    // The cost is measured over whole periods, with both ends between two slots. For `minute` it covers 1.5 s before the slot and 3 s
    // after.
    const [beforeMs, afterMs] = kind === "minute" ? [1_500, 3_000] : [period / 2, (rounds - 0.5) * period];
    await until(firstMs - beforeMs);
    const before = await cost(subject);
    const load = loadavg()[0] as number;
    await until(firstMs + afterMs);
    const after = await cost(subject);
    await noted(subject, firstMs, due.length);
    await subject.stop();
    const sum = await account(
      client,
      schema,
      Array.from({ length: tasks }, (_, task) => taskName(task)),
      due,
      subject.starts,
    );
    const { lateness, faults: _, ...counts } = sum;
    const figures: Figures = {
      ...latenessFigures(lateness),
      ...counts,
      ...lastStart(kind, lateness),
      early: lateness.filter((ms) => ms < -clockErrorMs).length,
      ...spent(before, after, part),
      setup_ms: setupMs,
      load_1m: load,
    };
    return { figures, sum };
  } finally {
    subject.kill();
    await client.query(`drop schema if exists "${schema}" cascade`);
  }
}

/** Starts the same number of handlers by a bare timer in a process without Carillon, for about five seconds. */
async function bare(tasks: number): Promise<Figures> {
  const subject = new Subject(new URL("./steady/bare.js", import.meta.url), {
    kind: "second",
    tasks,
    url,
    schema: "",
  } satisfies Order);
  try {
    await subject.started(10_000);
    await pause(6_500);
    await subject.stop();
    if (subject.starts.length === 0) throw new Error("the bare timer noted nothing");
    const lateness = subject.starts.map(({ atMs, slotMs }) => atMs - slotMs);
    return { ...latenessFigures(lateness), ...lastStart(tasks > 1_000 ? "minute" : "second", lateness) };
  } finally {
    subject.kill();
  }
}

function lastStart(kind: Kind, lateness: number[]): Figures {
  return kind === "minute"
    ? { last_start_ms: lateness.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY) }
    : {};
}

interface Cost extends Usage {
  atMs: number;
  statements: number;
}

async function cost(subject: Subject): Promise<Cost> {
  const [usage, executed] = await Promise.all([subject.usage(), statements.soFar()]);
  return { ...usage, statements: executed, atMs: performance.now() };
}

function spent(before: Cost, after: Cost, { kind, tasks, rounds }: Part): Figures {
  const seconds = (after.atMs - before.atMs) / 1_000;
  const cpuUs = after.cpuUs - before.cpuUs;
  return {
    rss_mb: after.rssBytes / 2 ** 20,
    cpu_us_per_op: cpuUs / (tasks * (kind === "minute" ? 1 : rounds)),
    ...(kind === "minute" ? {} : { cpu_share: cpuUs / 1e6 / seconds }),
    // Minus one, because the second query of the count counts itself; the process under test did not send it.
    ...(statements.counts ? { statements_per_s: (after.statements - before.statements - 1) / seconds } : {}),
  };
}

/** Waits up to 5 s for the records of all due slots, which arrive in batches. `account` reports records that are still missing. */
async function noted(subject: Subject, firstMs: number, count: number): Promise<void> {
  const patience = Date.now() + 5_000;
  while (Date.now() < patience && subject.starts.filter(({ slotMs }) => slotMs >= firstMs).length < count)
    await pause(200);
}

async function until(atMs: number): Promise<void> {
  await pause(Math.max(0, atMs - Date.now()));
}

function line({ p50_ms, p99_ms, max_ms, fired, lost, doubled, load_1m }: Figures): string {
  const ms = [p50_ms, p99_ms, max_ms].map((value) => rounded(value ?? Number.NaN));
  return `p50 ${ms[0]} p99 ${ms[1]} max ${ms[2]} ms, ${fired} fired, ${lost} lost, ${doubled} doubled, load ${rounded(load_1m ?? Number.NaN)}`;
}

function progress(text: string): void {
  if (!json) console.error(text);
}
