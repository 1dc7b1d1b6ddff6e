/**
 * Is a delay queue on ZooKeeper punctual, however many items are pending in it?
 *
 *   npm run bench -- delay-queue               0, 10k, 100k and 1M items pending, Carillon and Java Curator in turn
 *   npm run bench -- delay-queue --most 100000 no more pending than that
 *   … --no-peers, --runs N, --json
 *
 * For each size one queue holds that many items that are due in a day. The bench adds items that are due soon, a hundred a second for ten
 * seconds; a consumer in its own process records the start of each handler. At the largest size the bench also drains a backlog that
 * becomes due at one instant. Java's consumer runs twice: with its default limit of a reply's size, and with a raised limit. All consumers
 * use a lock path.
 */
import { loadavg } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connect, DelayQueue, isZooKeeperError } from "@carillon/zookeeper";
import { Curator } from "./delay-queue/curator.ts";
import { itemText, type Order, type Schedule } from "./delay-queue/order.ts";
import { type Figures, latenessFigures, rounded, suffixed } from "./measure/figures.ts";
import { type Aim, machine, print, type Report } from "./measure/report.ts";
import type { Start } from "./measure/starts.ts";
import { Subject } from "./measure/subject.ts";

const sizes = [
  { pending: 0, suffix: "_0" },
  { pending: 10_000, suffix: "_10k" },
  { pending: 100_000, suffix: "_100k" },
  { pending: 1_000_000, suffix: "_1m" },
];
const aims: Aim[] = [
  ...sizes.map(({ suffix }) => ({ figure: `p99_ms${suffix}`, atMost: 20 })),
  { figure: "per_s_1m", atLeast: 2_000 },
  { figure: "rss_mb_1m", atMost: 400 },
];
const soon = { count: 1_000, everyMs: 10, leadMs: 2_000 };
const backlog = { count: 20_000, leadMs: 4_000 };
const window = 1_000;
const concurrency = 200;
/** The wait in ms after the last item's due time; items that are not delivered by then count as undelivered. */
const patienceMs = 10_000;
const peerPatienceMs = 30_000;
const dayMs = 86_400_000;
/** The error of a clock reading in ms, because wall clocks are read in whole ms. */
const clockErrorMs = 1;
const raisedBytes = 256 * 2 ** 20;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "1" },
    most: { type: "string", default: "1000000" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
const [runs, most] = [Number(values.runs), Number(values.most)];
if (!Number.isInteger(runs) || runs < 1) throw new Error(`--runs must be a whole number above 0, not ${values.runs}`);
const measured = sizes.filter(({ pending }) => pending <= most);
const largest = measured.at(-1);
if (!largest) throw new Error(`--most must be a number from 0 on, not ${values.most}`);
const url = process.env.CARILLON_BENCH_ZOOKEEPER_URL ?? "";
if (url === "")
  throw new Error("CARILLON_BENCH_ZOOKEEPER_URL is not set; start this by `npm run bench -- delay-queue`");

const peers: { name: string; juteMaxBuffer: number | undefined }[] = values["no-peers"]
  ? []
  : [
      { name: "curator", juteMaxBuffer: undefined },
      { name: "curator-raised-limit", juteMaxBuffer: raisedBytes },
    ];
const report: Report = {
  question: "delay-queue",
  carillon: [],
  peers: Object.fromEntries(peers.map(({ name }) => [name, []])),
  limit: [],
  aims,
  machine: machine(
    `${process.env.CARILLON_TEST_ZOOKEEPER_TITLE ?? "ZooKeeper"} at ${url}, one server, fsync as it is set`,
  ),
  notes: [],
};
const faults: string[] = [];

const zk = await connect(url, { sessionTimeoutMs: 60_000 });
try {
  for (let run = 1; run <= runs; run++) await measureAll(run);
} finally {
  await zk.close();
}
report.notes.push(
  faults.length === 0
    ? "Every item of Carillon's was consumed once, none early, and the queue held what was pending afterwards."
    : `IT DOES NOT ADD UP\n  ${faults.join("\n  ")}`,
);
if (faults.length > 0) {
  process.exitCode = 1;
  if (values.json) console.error(faults.join("\n"));
}
print(report, values.json);

async function measureAll(run: number): Promise<void> {
  const path = `/bench-delay-queue-${process.pid}-${run}`;
  const order: Order = { url, path, lockPath: `${path}-locks`, concurrency };
  const queue = new DelayQueue(zk, path, { lockPath: order.lockPath });
  const ours: Figures = {};
  const limit: Figures = {};
  const theirs = new Map(peers.map(({ name }) => [name, {} as Figures]));
  let pending = 0;
  for (const size of measured) {
    const began = performance.now();
    const farMs = Date.now() + dayMs;
    const first = pending;
    await each(size.pending - first, (i) => queue.put(itemText(-1, 0), { at: farMs + first + i }));
    pending = size.pending;
    if (size === largest) ours[`fill_s${size.suffix}`] = (performance.now() - began) / 1_000;

    const { figures, timer } = await carillon(queue, order, size.pending, size === largest);
    Object.assign(ours, suffixed(figures, size.suffix));
    Object.assign(limit, suffixed(timer, size.suffix));
    progress(size.suffix, "carillon", ours);
    for (const { name, juteMaxBuffer } of peers) {
      const found = theirs.get(name) as Figures;
      Object.assign(found, suffixed(await curator(queue, order, juteMaxBuffer), size.suffix));
      progress(size.suffix, name, found);
    }
  }
  report.carillon.push(ours);
  for (const [name, figures] of theirs) report.peers[name]?.push(figures);
  report.limit.push({ ...limit, ...suffixed(await bareServer(path), largest?.suffix ?? "") });
}

async function carillon(
  queue: DelayQueue,
  order: Order,
  pending: number,
  drains: boolean,
): Promise<{ figures: Figures; timer: Figures }> {
  const subject = new Subject(new URL("./delay-queue/consumer.js", import.meta.url), order);
  try {
    const began = performance.now();
    await subject.started(120_000);
    const figures: Figures = { ready_ms: performance.now() - began };
    const timing = bareTimer();
    timing.catch(() => undefined); // `timing` is awaited below; if a step before that throws, this rejection must not end the process.
    const { due } = await putSoon(queue);
    await told(() => subject.starts.length >= due.length, (due.at(-1) as number) + patienceMs);
    Object.assign(figures, account(due, subject.starts, `${pending} pending`, true), { load_1m: loadavg()[0] });
    const timer = await timing;
    if (drains) Object.assign(figures, await drain(queue, subject, pending));
    figures.rss_mb = (await subject.usage()).rssBytes / 2 ** 20;
    const left = await queue.size();
    if (left !== pending) faults.push(`${pending} pending: ${left} are in the queue afterwards`);
    await subject.stop();
    return { figures, timer };
  } finally {
    subject.kill();
  }
}

/** Measures how fast a backlog that becomes due at one instant is delivered: until only the `pending` items are left, at most 60 s. */
async function drain(queue: DelayQueue, subject: Subject, pending: number): Promise<Figures> {
  const before = subject.starts.length;
  const dueMs = Date.now() + backlog.leadMs;
  await each(backlog.count, (i) => queue.put(itemText(i, dueMs), { at: dueMs }));
  if (Date.now() > dueMs) faults.push("the backlog was not put before it was due");
  await pause(Math.max(0, dueMs - Date.now()));
  const { cpuUs } = await subject.usage();
  while ((await queue.size()) > pending && Date.now() < dueMs + 60_000) await pause(20);
  const seconds = (Date.now() - dueMs) / 1_000;
  const spent = (await subject.usage()).cpuUs - cpuUs;
  await told(() => subject.starts.length >= before + backlog.count, Date.now() + 2_000);
  const due = Array.from({ length: backlog.count }, () => dueMs);
  const { fired = 0 } = account(due, subject.starts.slice(before), `backlog on ${pending} pending`, true);
  return { per_s: fired / seconds, cpu_us_per_op: spent / backlog.count };
}

async function curator(queue: DelayQueue, order: Order, juteMaxBuffer: number | undefined): Promise<Figures> {
  const began = performance.now();
  const peer = await Curator.start(order, juteMaxBuffer);
  const figures: Figures = { ready_ms: performance.now() - began };
  const { due, names } = await putSoon(queue);
  try {
    const [firstMs, lastMs] = [due[0] as number, due.at(-1) as number];
    // A consumer that has delivered nothing 10 s after the last due time never will, because its listing of the queue fails; so the
    // bench stops waiting for it.
    await told(() => peer.starts.length > 0, lastMs + patienceMs);
    if (peer.starts.length > 0) await told(() => peer.starts.length >= due.length, lastMs + peerPatienceMs);
    const { starts } = peer;
    Object.assign(figures, account(due, starts, "", false), { rss_mb: peer.rssBytes() / 2 ** 20 });
    // A consumer that falls behind is saturated, so its rate here is its highest rate.
    if (starts.length < due.length) figures.per_s = starts.length / ((Date.now() - firstMs) / 1_000);
  } finally {
    await peer.stop();
  }
  // Delete undelivered items, so that the next consumer does not receive them.
  await each(names.length, async (i) => {
    try {
      await zk.delete(`${order.path}/${names[i]}`);
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE")) throw error;
    }
  });
  return figures;
}

async function putSoon(queue: DelayQueue): Promise<{ due: number[]; names: string[] }> {
  const firstMs = Date.now() + soon.leadMs;
  const due = Array.from({ length: soon.count }, (_, i) => firstMs + i * soon.everyMs);
  const names: string[] = [];
  await each(due.length, async (i) => {
    names[i] = await queue.put(itemText(i, due[i] as number), { at: due[i] as number });
  });
  return { due, names };
}

/** @param due the due times by item number @param ours true for Carillon, whose faults fail the bench */
function account(due: number[], starts: Start[], what: string, ours: boolean): Figures {
  const seen = new Map<number, number>();
  const lateness: number[] = [];
  let doubled = 0;
  for (const { task, slotMs, atMs } of starts) {
    if (due[task] !== slotMs) {
      faults.push(`${what}: item ${task} of ${slotMs} was never put`);
      continue;
    }
    if (seen.has(task)) doubled++;
    else lateness.push(atMs - slotMs);
    seen.set(task, atMs);
  }
  const undelivered = due.length - seen.size;
  const early = lateness.filter((ms) => ms < -clockErrorMs).length;
  if (ours && undelivered + doubled + early > 0)
    faults.push(`${what}: ${undelivered} not delivered, ${doubled} doubled, ${early} early`);
  const figures = { fired: lateness.length, undelivered, doubled, early };
  return lateness.length === 0 ? figures : { ...latenessFigures(lateness), ...figures };
}

/** Measures how punctual the machine is at the moment: starts the same number of items by plain timers in a process of its own. */
async function bareTimer(): Promise<Figures> {
  const { count, everyMs, leadMs } = soon;
  const schedule: Schedule = { firstMs: Date.now() + leadMs, everyMs, count };
  const subject = new Subject(new URL("./delay-queue/bare.js", import.meta.url), schedule);
  try {
    await subject.started(10_000);
    await told(() => subject.starts.length >= count, schedule.firstMs + count * everyMs + patienceMs);
    await subject.stop();
    return latenessFigures(subject.starts.map(({ atMs, slotMs }) => atMs - slotMs));
  } finally {
    subject.kill();
  }
}

/**
 * Measures the server's rate without a queue: transactions that lock an item and transactions that complete it, `concurrency` at a time.
 */
async function bareServer(path: string): Promise<Figures> {
  const [items, locks, count] = [`${path}-bare`, `${path}-bare-locks`, 10_000];
  for (const parent of [items, locks]) await zk.create(parent);
  await each(count, (i) => zk.create(`${items}/${i}`, "x"));
  const began = performance.now();
  const one = async (i: number) => {
    const [item, lock] = [`${items}/${i}`, `${locks}/${i}`];
    await zk.get(item);
    await zk.multi([
      { type: "set", path: item, data: "x" },
      { type: "create", path: lock, ephemeral: true },
    ]);
    await zk.multi([
      { type: "delete", path: item },
      { type: "delete", path: lock },
    ]);
  };
  await each(count, one, concurrency);
  return { per_s: (count / (performance.now() - began)) * 1_000 };
}

/** Calls `work` with 0 … count − 1, at most `atATime` calls at once; resolves when all have ended. */
async function each(count: number, work: (i: number) => Promise<unknown>, atATime = window): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(count, atATime) }, lane));
}

async function told(enough: () => boolean, untilMs: number): Promise<void> {
  while (!enough() && Date.now() < untilMs) await pause(100);
}

function progress(suffix: string, who: string, figures: Figures): void {
  if (values.json) return;
  const show = (name: string) => rounded(figures[`${name}${suffix}`] ?? Number.NaN);
  console.error(
    `${suffix.slice(1)} pending, ${who}: p50 ${show("p50_ms")} p99 ${show("p99_ms")} max ${show("max_ms")} ms, ` +
      `${show("fired")} fired, ready in ${show("ready_ms")} ms, ${show("rss_mb")} MB, ${show("per_s")} per s drained`,
  );
}
