/**
 * The cost of a handler that runs in a thread or process of its own, and the benefit for other runs when that handler computes.
 *
 *   npm run bench -- isolate               three runs, of the peer too: about eight minutes, five without the peer
 *   … --short                              fewer no-ops, and loops of 5 s in place of 30 s
 *   … --runs N, --no-peers, --json
 *
 * - `overhead_ms`: three no-op handlers run one at a time and in turn: plain, in a thread, in a process. The time is from the handler's
 *   call until the worker has its result; the figure is the median for the thread minus the median for the plain handler.
 *   `overhead_ms_process` is the same for the process.
 * - beside: one node has 500 tasks that are due each second, evenly spread, and a handler in a thread that computes for 30 s without a
 *   pause. Measured is the lateness of the 500 tasks during the computation, and just before it as the machine's own share
 *   (`p99_ms_before`).
 * - elsewhere: two nodes have these tasks, and the same handler runs without isolation on one of them.
 *
 * Each part uses fresh processes and a fresh schema. The handlers log their starts; ledger and history are compared with the log slot by
 * slot. `sessions_lost` and `innocent_lost` (lost attempts of the 500 tasks) are read from the store, for both parts. The peer is BullMQ
 * with its sandboxed processors: the same no-ops, timed from its worker's event "active" to "completed", when Redis has received the end.
 * BullMQ also runs 500 jobs a second beside a sandboxed processor that computes in a thread; these jobs are added when they are due, since
 * BullMQ starts such jobs most promptly.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { carillon } from "carillon";
import pg from "pg";
import { peer } from "./contest/contender.ts";
import { redisNumber, tellRedis } from "./contest/redis.ts";
import { computingName, kinds, type Order, type PeerOrder, phaseMs, taskName } from "./isolate/order.ts";
import { account, type DueSlot } from "./measure/account.ts";
import { type Figures, latenessFigures, median, rounded } from "./measure/figures.ts";
import { type Aim, addPeer, machine, newReport, print } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { serverUrl } from "./measure/services.ts";
import { Subject } from "./measure/subject.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "3" },
    short: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
const runs = Number(values.runs);
if (!Number.isInteger(runs) || runs < 1) throw new Error(`--runs must be a whole number above 0, not ${values.runs}`);
const [rounds, loopMs] = values.short ? [300, 5_000] : [2_000, 30_000];
/** The first rounds of no-ops are not counted, because code is still being compiled. */
const warmRounds = 50;
const tasks = 500;
const settleMs = 3_000;
const beforeSeconds = 5;
/** The peer receives its 500 jobs a second in batches of this size. */
const addedAtOnce = 10;
const patienceMs = 120_000;

const aims: Aim[] = [
  { figure: "overhead_ms", atMost: 0.5 },
  { figure: "p99_ms_beside", atMost: 20 },
  { figure: "late_max_ms_elsewhere", atMost: 500 },
  ...["sessions_lost", "innocent_lost", "lost", "doubled"].map((figure) => ({ figure, atMost: 0 })),
];
const url = serverUrl("postgres");
const client = new pg.Client({ connectionString: url });
await client.connect();
const report = newReport("isolate", aims, machine(await serverTitle(client)));
const say = (who: string, found: Figures) => {
  if (!values.json)
    console.error(
      `${who}: ${Object.entries(found)
        .map(([name, value]) => `${name} ${rounded(value)}`)
        .join(", ")}`,
    );
};
try {
  for (let run = 1; run <= runs; run++) {
    const cost = await overhead();
    const [beside, elsewhere] = [await computing("thread"), await computing("plain")];
    const sum = (figure: string) => (beside[figure] ?? Number.NaN) + (elsewhere[figure] ?? Number.NaN);
    const figures: Figures = {
      ...cost,
      p99_ms_before: beside.p99_ms_before as number,
      p50_ms_beside: beside.p50_ms as number,
      p99_ms_beside: beside.p99_ms as number,
      max_ms_beside: beside.max_ms as number,
      late_max_ms_elsewhere: elsewhere.max_ms as number,
      p99_ms_elsewhere: elsewhere.p99_ms as number,
    };
    for (const figure of ["sessions_lost", "innocent_lost", "slots_due", "lost", "doubled"])
      figures[figure] = sum(figure);
    say("carillon", figures);
    report.carillon.push(figures);
    if (values["no-peers"]) continue;
    const found = await bullmq();
    say("bullmq", found);
    addPeer(report, "bullmq", found);
  }
} finally {
  await client.end();
}
print(report, values.json);

/** Runs `work` on a fresh schema for one part, and drops the schema afterwards. */
async function onSchema<Result>(part: string, work: (schema: string) => Promise<Result>): Promise<Result> {
  const schema = `bench_isolate_${part}`;
  const drop = () => client.query(`drop schema if exists "${schema}" cascade`);
  await drop();
  return work(schema).finally(drop);
}

function node(order: Partial<Order> & Pick<Order, "schema">): Subject {
  const whole: Order = { url, name: "node", tasks: 0, computes: null, rounds: 0, ...order };
  return new Subject(new URL("./isolate/node.js", import.meta.url), whole);
}

/** Collects the durations of the no-ops. `StartNotes` carries the index of the handler's kind as `task` and the duration as `slotMs`. */
async function durations(subject: Subject): Promise<Figures> {
  try {
    await subject.started(patienceMs);
    await until(() => subject.starts.length >= rounds * kinds.length);
    await subject.stop();
    const of = (place: number) => subject.starts.filter(({ task }) => task === place).map(({ slotMs }) => slotMs);
    const [plain, thread, processes] = kinds.map((_, place) => median(of(place).slice(warmRounds))) as [
      number,
      number,
      number,
    ];
    return { overhead_ms: thread - plain, overhead_ms_process: processes - plain, plain_ms: plain };
  } finally {
    subject.kill();
  }
}

function overhead(): Promise<Figures> {
  return onSchema("overhead", (schema) => durations(node({ schema, rounds })));
}

function dueFrom(firstMs: number, seconds: number): DueSlot[] {
  return Array.from({ length: seconds * tasks }, (_, at) => ({
    task: at % tasks,
    slotMs: firstMs + Math.floor(at / tasks) * 1_000 + phaseMs(at % tasks, tasks),
  }));
}

/**
 * Measures the lateness and losses of the other tasks while one handler computes: in a thread on the same node ("thread"), or without
 * isolation with a second node that can execute the other tasks ("plain").
 */
function computing(computes: "thread" | "plain"): Promise<Figures> {
  return onSchema(computes, async (schema) => {
    const nodes = [node({ schema, name: "still", tasks, computes })];
    if (computes === "plain") nodes.push(node({ schema, name: "other", tasks }));
    const asking = carillon({ store: url, schema, worker: false, scheduler: false, handleSignals: false });
    try {
      await Promise.all(nodes.map((subject) => subject.started(patienceMs)));
      await pause(settleMs);
      const firstMs = Math.ceil(Date.now() / 1_000) * 1_000;
      await pause(firstMs + beforeSeconds * 1_000 - Date.now());
      const beganMs = Date.now();
      const { runId } = await asking.enqueue("computing", { ms: loopMs });
      await until(
        async () => (await rows(`select from "${schema}".run_history where id = $1`, [runId])).length > 0,
        loopMs + patienceMs,
      );
      await checkComputed(schema, runId, computes);
      const endedMs = Date.now();
      const seconds = Math.floor((endedMs - firstMs) / 1_000) + 1;
      await pause(firstMs + seconds * 1_000 + 2_000 - Date.now());
      const ended = await rows(`select from "${schema}".session where ended_ms is not null`);
      const lost = await rows(`select from "${schema}".attempt where outcome = 'lost' and run_id <> $1`, [runId]);
      await Promise.all(nodes.map((subject) => subject.stop()));
      const due = dueFrom(firstMs, seconds);
      const names = Array.from({ length: tasks }, (_, task) => taskName(task));
      const starts = nodes.flatMap((subject) => subject.starts);
      const found = await account(client, schema, names, due, starts);
      if (!values.json) for (const fault of found.faults.slice(0, 5)) console.error(fault);
      const late = (from: number, to: number) =>
        latenessFigures(
          starts.filter(({ slotMs }) => slotMs >= from && slotMs < to).map(({ atMs, slotMs }) => atMs - slotMs),
        );
      return {
        ...late(beganMs, endedMs),
        p99_ms_before: late(firstMs, beganMs).p99_ms as number,
        sessions_lost: ended.length,
        innocent_lost: lost.length,
        slots_due: due.length,
        lost: found.lost + found.missed + found.skipped,
        doubled: found.doubled,
      };
    } finally {
      for (const subject of nodes) subject.kill();
      await asking.stop();
    }
  });
}

/** Throws unless the handler computed for the intended time, in its first attempt, and in the intended thread. */
async function checkComputed(schema: string, runId: number, computes: "thread" | "plain"): Promise<void> {
  const [row] = await rows<{ outcome: number; attempt: number; result: { isMainThread: boolean; tookMs: number } }>(
    `select outcome, attempt, result from "${schema}".run_history where id = $1`,
    [runId],
  );
  const { outcome, attempt, result } = row ?? {};
  if (
    outcome === 0 &&
    attempt === 1 &&
    result &&
    result.tookMs >= loopMs &&
    result.isMainThread === (computes === "plain")
  )
    return;
  throw new Error(`the run that was to compute did not do so: ${JSON.stringify(row)}`);
}

async function rows<Row extends object>(text: string, given: unknown[] = []): Promise<Row[]> {
  return (await client.query<Row>(text, given)).rows;
}

async function until(condition: () => boolean | Promise<boolean>, withinMs = patienceMs): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain`);
    await pause(50);
  }
}

interface Queue {
  add(name: string, data: object, options: object): Promise<unknown>;
  addBulk(jobs: object[]): Promise<unknown>;
  close(): Promise<unknown>;
}

async function bullmq(): Promise<Figures> {
  const redis = serverUrl("redis");
  await tellRedis(redis, "CONFIG SET hz 100");
  await tellRedis(redis, "FLUSHALL");
  const program = new URL("./isolate/bullmq.js", import.meta.url);
  const order = { redis, queue: "bench", rounds, useWorkerThreads: false } satisfies Partial<PeerOrder>;
  const cost = await durations(new Subject(program, { ...order, part: "overhead" } satisfies PeerOrder));
  const subject = new Subject(program, { ...order, part: "beside", useWorkerThreads: true } satisfies PeerOrder);
  const { Queue } = (await peer("bullmq")) as { Queue: new (name: string, options: object) => Queue };
  const { hostname: host, port } = new URL(redis);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const [queue, slow] = [new Queue("bench", { connection }), new Queue(computingName("bench"), { connection })];
  try {
    await subject.started(patienceMs);
    const added: string[] = [];
    const options = { removeOnComplete: true };
    // The first run in a sandbox starts its thread, so this run is not measured.
    await slow.add("computing", { ms: 0 }, options);
    const seconds = beforeSeconds + loopMs / 1_000;
    // The first seconds are for warming up, as for Carillon: their jobs must be done, but their lateness is not measured.
    const firstMs = Math.ceil(Date.now() / 1_000) * 1_000 + settleMs;
    const due = dueFrom(firstMs - settleMs, seconds + settleMs / 1_000);
    let loop: Promise<unknown> | undefined;
    for (let from = 0; from < due.length; from += addedAtOnce) {
      const some = due.slice(from, from + addedAtOnce);
      const [{ slotMs: atMs }] = some as [DueSlot];
      await pause(Math.max(0, atMs - Date.now()));
      if (atMs >= firstMs + beforeSeconds * 1_000) loop ??= slow.add("computing", { ms: loopMs }, options);
      // All jobs of a batch are due when the batch is added, so that a delay of this process does not count as lateness of the peer.
      const data = some.map(({ task: id }) => ({ id, dueMs: Date.now() }));
      added.push(...data.map(({ id, dueMs }) => `${id} ${dueMs}`));
      await queue.addBulk(data.map((one) => ({ name: "bench", data: one, opts: options })));
    }
    await loop;
    const left = () => redisNumber(redis, `LLEN bull:${computingName("bench")}:active`);
    await until(async () => (await left()) === 0 && subject.starts.length >= due.length, loopMs + patienceMs).catch(
      () => undefined,
    ); // Missing jobs are counted below.
    await subject.stop();
    const keys = subject.starts.map(({ task, slotMs }) => `${task} ${slotMs}`);
    const seen = new Set(keys);
    const loopFromMs = firstMs + beforeSeconds * 1_000;
    const late = (fromMs: number, toMs: number) =>
      latenessFigures(
        subject.starts
          .filter(({ slotMs }) => slotMs >= fromMs && slotMs < toMs)
          .map(({ atMs, slotMs }) => atMs - slotMs),
      );
    const { p50_ms, p99_ms, max_ms } = late(loopFromMs, Number.POSITIVE_INFINITY);
    return {
      ...cost,
      p99_ms_before: late(firstMs, loopFromMs).p99_ms as number,
      p50_ms_beside: p50_ms as number,
      p99_ms_beside: p99_ms as number,
      max_ms_beside: max_ms as number,
      slots_due: added.length,
      lost: added.filter((key) => !seen.has(key)).length,
      doubled: keys.length - seen.size,
    };
  } finally {
    subject.kill();
    await Promise.all([queue.close(), slow.close()]);
  }
}
