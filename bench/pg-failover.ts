/**
 * The primary PostgreSQL dies and a lagging standby is promoted: does a slot fire twice, is a number issued twice, or is anything lost?
 *
 *   npm run bench -- pg-failover           20 rounds with a standby 1 to 30 s behind, 3 with a synchronous one: about 12 minutes
 *   … --rounds N, --sync-rounds N, --lag SECONDS (at most), --json
 *
 * Each round has a primary and a streaming standby of the machine's PostgreSQL, and two nodes that schedule, execute and enqueue runs (25 a
 * second each), with both hosts in their URL. The replication connection is held up, so that the standby lacks 1 to 30 s of committed work;
 * then the primary is killed with -9 and the standby promoted. Both nodes survive. They report each start of a run and each acknowledged
 * enqueue to the bench, not through the store.
 *
 * - slots_twice: starts of slots beyond the first. run_ids_reused, fences_reused: numbers that were issued for two different things.
 * - acked_lost: acknowledged enqueues that still had not started after 20 s of waiting.
 * - back_ms: from the end of the promotion, as the server reports it, to the start of a run that was enqueued right after it.
 * - resubmitted: runs and verdicts that nodes sent to the store a second time. …_sync: with a synchronous standby.
 */
import { type ChildProcess, fork } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";
import { FaultProxy } from "./measure/fault-proxy.ts";
import type { Figures } from "./measure/figures.ts";
import { type Aim, machine, newReport, print } from "./measure/report.ts";
import { standbyScripts } from "./measure/synchronous-pair.ts";
import type { Order, Told } from "./pg-failover/node.ts";

const patienceMs = 20_000;
const perSecond = 25;
const aims: Aim[] = [
  ...["slots_twice", "run_ids_reused", "fences_reused", "acked_lost"].flatMap((figure) => [
    { figure, atMost: 0 },
    { figure: `${figure}_sync`, atMost: 0 },
  ]),
  { figure: "back_ms", atMost: 2_000 },
  { figure: "resubmitted_sync", atMost: 0 },
];

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    "sync-rounds": { type: "string", default: "3" },
    lag: { type: "string", default: "30" },
    json: { type: "boolean", default: false },
  },
});
const [rounds, syncRounds, lagMost] = [values.rounds, values["sync-rounds"], values.lag].map((text) => {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0) throw new Error(`a whole number is wanted, not ${text}`);
  return number;
}) as [number, number, number];

const { startPair } = await standbyScripts();
const report = newReport(
  "pg-failover",
  aims,
  machine("a primary and a streaming standby of the machine's PostgreSQL, fsync on"),
);
for (let n = 0; n < rounds; n++) {
  // The lags are spread over the range, and are the same in each call of the bench.
  const lagMs = 1_000 + ((n * 7_919) % Math.max(1, lagMost * 1_000 - 1_000));
  const figures = await round(lagMs);
  report.carillon.push({ ...figures, lag_ms: lagMs });
  process.stderr.write(`round ${n + 1} of ${rounds}: ${JSON.stringify(report.carillon.at(-1))}\n`);
}
for (let n = 0; n < syncRounds; n++) {
  const figures = await round(null);
  report.carillon.push(Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${name}_sync`, value])));
  process.stderr.write(`synchronous ${n + 1} of ${syncRounds}: ${JSON.stringify(report.carillon.at(-1))}\n`);
}
print(report, values.json);
process.exit();

/** @param lagMs how far the standby is behind, in ms; null: it replicates synchronously */
async function round(lagMs: number | null): Promise<Figures> {
  const home = mkdtempSync(join(tmpdir(), "carillon-bench-failover-"));
  chmodSync(home, 0o711);
  let line: FaultProxy | undefined;
  const nodes: ChildProcess[] = [];
  const told: Told[] = [];
  const { primary, standby } = await startPair(home, true, async (url) => {
    line = await FaultProxy.before(url);
    return line.url;
  });
  try {
    if (lagMs === null)
      await ask(primary.url, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()");
    const [first, second] = [new URL(primary.url), new URL(standby.url)];
    const store = primary.url.replace(
      `${first.hostname}:${first.port}`,
      `127.0.0.1:${first.port},127.0.0.1:${second.port}`,
    );
    for (const name of ["first", "second"])
      nodes.push(await startNode({ store: `${store}?target_session_attrs=read-write`, name, perSecond }, told));
    await pause(3_000);
    if (lagMs !== null) {
      line?.silence();
      await pause(lagMs);
    }
    primary.child.kill("SIGKILL");
    await ask(standby.url, "select pg_promote(true)");
    const promotedMs = Date.now();
    nodes[0]?.send("after the promotion");
    const starts = () => told.flatMap((one) => (one.kind === "start" ? [one] : []));
    const back = await until(() => starts().find(({ id }) => id === "after the promotion"));
    const acknowledged = told.flatMap((one) => (one.kind === "acknowledged" ? [one] : []));
    for (const node of nodes) node.send("quiet");
    const open = () => {
      const started = new Set(starts().flatMap(({ id }) => (id === null ? [] : [id])));
      return acknowledged.filter(({ id }) => !started.has(id));
    };
    await until(() => (open().length === 0 ? true : undefined));
    // Wait for second starts: a slot that fires twice does so within this time.
    await pause(3_000);
    const [row] = await ask(
      standby.url,
      "select coalesce(sum(runs + verdicts), 0)::int as resubmitted, count(*)::int as recoveries from carillon.recovery",
    );
    return {
      slots_twice: twice(
        starts().filter(({ slot }) => slot !== null),
        ({ task, slot }) => `${task} ${slot}`,
      ),
      run_ids_reused: reused(
        starts(),
        ({ run }) => run,
        ({ task, slot, id }) => `${task} ${slot} ${id}`,
      ),
      fences_reused: reused(
        starts(),
        ({ fence }) => fence,
        ({ run, attempt }) => `${run} ${attempt}`,
      ),
      acked_lost: open().length,
      back_ms: back === undefined ? patienceMs : back.at - promotedMs,
      resubmitted: Number(row?.resubmitted),
      starts: starts().length,
    };
  } finally {
    for (const { pid } of [...nodes, primary.child, standby.child]) if (pid !== undefined) end(pid);
    await line?.close();
    await pause(200);
    rmSync(home, { recursive: true, force: true, maxRetries: 10 });
  }
}

function startNode(order: Order, told: Told[]): Promise<ChildProcess> {
  const child = fork(new URL("./pg-failover/node.js", import.meta.url), [JSON.stringify(order)], {
    stdio: ["ignore", 2, 2, "ipc"],
  });
  return new Promise((resolve, reject) => {
    child.once("exit", (code, signal) => reject(new Error(`the node ${order.name} ended with ${signal ?? code}`)));
    child.on("message", (one: Told) => {
      told.push(one);
      if (one.kind === "ready") resolve(child);
    });
  });
}

/** Kills a process; does nothing if it has ended. */
function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as { code?: string }).code !== "ESRCH") throw error;
  }
}

async function ask(url: string, ...texts: string[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const text of texts) ({ rows } = await client.query(text));
    return rows;
  } finally {
    await client.end();
  }
}

/** Calls `look` every 20 ms until it returns a value, and returns that value. @returns undefined after 20 s without a value */
async function until<T>(look: () => T | undefined): Promise<T | undefined> {
  for (const deadline = performance.now() + patienceMs; performance.now() < deadline; ) {
    const found = look();
    if (found !== undefined) return found;
    await pause(20);
  }
  return undefined;
}

/** Returns the number of entries whose key an earlier entry has. */
function twice<T>(all: T[], key: (one: T) => string): number {
  return all.length - new Set(all.map(key)).size;
}

/** Returns how many numbers were issued for more than one thing. */
function reused<T>(all: T[], number: (one: T) => number, thing: (one: T) => string): number {
  const things = new Map<number, string>();
  const found = new Set<number>();
  for (const one of all) {
    const before = things.get(number(one));
    if (before !== undefined && before !== thing(one)) found.add(number(one));
    things.set(number(one), thing(one));
  }
  return found.size;
}
