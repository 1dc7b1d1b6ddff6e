/** Runs a soak test: starts the cluster, applies load and faults, and finally checks the invariants. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { hashOfSecret, keyText, makeSecret } from "../../../scheduler/src/access/worker-key.ts";
import { isCarillonError } from "../../../scheduler/src/base/errors.ts";
import { Carillon } from "../../../scheduler/src/library/carillon.ts";
import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Happening, History, Operation, Violation } from "../history.ts";
import { type Account, account, dumpOf } from "./account.ts";
import { Member } from "./crew.ts";
import { type Death, deathsOf, withoutCause } from "./deaths.ts";
import { faults, faultsOfNodes, inTurn, type Stage } from "./faults.ts";
import { Line } from "./line.ts";
import { load, remoteGroup } from "./load.ts";
import { MachineLoad } from "./machine-load.ts";
import { StartReader } from "./many-notes.ts";
import { definitionsOf, ManySlots, withBook } from "./many-slots.ts";
import type { Grid } from "./order.ts";
import { Sampler } from "./samples.ts";
import { StartLog } from "./start-log.ts";
import { StoreServer } from "./store-server.ts";

export interface SoakPlan {
  readonly lengthMs: number;
  readonly faultsPerMinute: number;
  readonly coordination: string | undefined;
  readonly sessionTimeoutMs: number;
  /** Set if the load is slots in millions, without the other tasks and without remote workers. */
  readonly grid: Grid | undefined;
  readonly random: () => number;
  say(line: string): void;
  /** Adds an entry to the log that is published with the result. */
  record(entry: object): void;
}

export interface Soaked {
  readonly title: string;
  readonly beganMs: number;
  readonly endedMs: number;
  readonly faults: {
    readonly atMs: number;
    readonly name: string;
    readonly recoveredMs: number;
    /** True if the machine had free processors during the fault and the recovery, so that lateness is the cluster's own. */
    readonly judged: boolean;
  }[];
  readonly deaths: readonly Death[];
  readonly sampler: Sampler;
  readonly account: Account;
  /** Names of the processes that were never killed. */
  readonly steady: readonly string[];
}

const nodes = ["atlas", "bora", "cygnus"];
const workers = ["worker-a", "worker-b"];
const steady = new Set(["atlas", "worker-a"]);
const schema = "soak";
const sampleMs = 10_000;
/** Slots in millions: their starts are read this often (ms), and the first is due this long (ms) after all processes have begun. */
const countedMs = 60_000;
const settledMs = 10_000;
const savedAtOnce = 50;
/**
 * After the faults, late runs catch up for `quietMs`; then runs must start in time for `settleMs`. The recovery from a single fault may
 * take `recoveryMs`.
 */
const quietMs = 20_000;
const settleMs = 40_000;
const recoveryMs = 30_000;
/** A recovery is not judged if this process waited longer than this in total (ms) for a processor since the beginning of the fault. */
const stoodMsMax = 2_000;
/** The largest error, in ms, of a time that a busy process records. */
const clockErrorMs = 100;

export async function soak(plan: SoakPlan): Promise<Soaked> {
  const { say, random, sessionTimeoutMs } = plan;
  const folder = mkdtempSync(join(tmpdir(), "carillon-soak-log-"));
  const log = new StartLog(join(folder, "starts"));
  const starts = new StartReader(folder);
  const store = await StoreServer.start();
  const operations: Operation[] = [];
  const happenings: Happening[] = [];
  const happened = (what: string) => void happenings.push({ atMs: Date.now(), what });
  const tower = new Carillon({
    store: store.url,
    schema,
    scheduler: false,
    worker: false,
    handleSignals: false,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  });
  const crew: { member: Member; line: Line }[] = [];
  const hands: Member[] = [];
  const machine = new MachineLoad();
  try {
    const { store: opened, nowMs } = await tower.open();
    const ask = asker(operations);
    const { grid } = plan;
    const definitions = grid ? definitionsOf(grid) : load.map(({ definition }) => definition);
    await saveAll(definitions, tower, ask);
    const secret = makeSecret();
    const made = { name: "soak", groups: [remoteGroup], hash: hashOfSecret(secret), createdBy: "soak" };
    const { keyId } = await opened.workers.createKey(made, nowMs());
    await gather({ plan, store, folder, log: log.path, key: keyText(keyId, secret), crew, hands });
    const all = [...crew.map(({ member }) => member), ...hands];
    for (const member of all) {
      happened(`${member.name} begins its life`);
      await member.start();
    }
    say(`${store.title}, ${nodes.length} nodes and ${hands.length} workers`);

    const beganMs = Date.now();
    const slots = grid && new ManySlots(grid, beganMs + settledMs);
    const healMs = slots?.endMs ?? beganMs + plan.lengthMs;
    const sampler = new Sampler(store.url, schema);
    const over = new AbortController();
    const stage = { store, nodes: crew, workers: hands, steady, random, happened };
    const beside = [
      ...(grid ? [] : load).flatMap(({ definition, enqueued }) =>
        enqueued ? [enqueueing({ tower, ask, random, over: over.signal }, definition.name, enqueued)] : [],
      ),
      sampling(sampler, all, log, over.signal),
      ...(slots ? [counting(plan, slots, starts, over.signal)] : []),
    ];
    // An error of the load or the sampling ends the test at once instead of at its end.
    const failed = Promise.all(beside);
    failed.catch(() => over.abort());

    const troubles = await troubled({ plan, stage, sampler, machine, beganMs, healMs, over: over.signal });
    await until(Math.max(healMs, Date.now()), over.signal);
    say("healed; waiting for the end of what is under way");
    const [healedMs, recoveredMs] = [Date.now(), Date.now() + quietMs];
    await until(recoveredMs + settleMs, over.signal);
    over.abort();
    await failed;
    await tower.stop();
    const endMs = Date.now();
    const deaths = await deathsOf(store.url, schema);
    const ended = {
      title: store.title,
      beganMs,
      endedMs: endMs,
      faults: troubles,
      deaths,
      sampler,
      steady: [...steady],
    };
    const others = withoutCause(deaths, happenings, sessionTimeoutMs);
    if (slots) {
      starts.take(slots);
      const sum = await withBook(store.url, schema, (book) => slots.account(book));
      for (const member of all) await member.stop();
      return { ...ended, account: withTroubles(sum, all, troubles, others) };
    }
    log.read();
    const dump = await dumpOf(store.url, schema);
    const history: History = {
      endMs,
      endStoreMs: endMs,
      healMs: healedMs,
      recoveredMs,
      epochMs: 0,
      clockErrorMs,
      sessionTimeoutMs,
      // The slack is four times the longest wait, because the cluster's processes have more work than this process, and wait longer.
      slackMs: 4 * machine.worstMs,
      nodes: [...nodes, ...workers],
      concurrency: 100,
      coordination: plan.coordination !== undefined,
      executions: log.executions,
      operations,
      applied: [],
      happenings,
      blocked: 0,
      dump,
    };
    const sum = account(history);
    for (const member of all) await member.stop();
    return { ...ended, account: withTroubles(sum, all, troubles, others) };
  } finally {
    for (const member of [...crew.map((one) => one.member), ...hands]) await member.kill();
    await tower.stop();
    machine.stop();
    for (const { line } of crew) await line.close();
    await store.close();
    log.close();
    starts.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Gathering {
  readonly plan: SoakPlan;
  readonly store: StoreServer;
  readonly folder: string;
  readonly log: string;
  /** The key of the remote workers. */
  readonly key: string;
  /** Receives the nodes, each with its line to the store; `hands` the workers. None is started. */
  readonly crew: { member: Member; line: Line }[];
  readonly hands: Member[];
}

async function gather({ plan, store, folder, log, key, crew, hands }: Gathering): Promise<void> {
  const { coordination, grid, sessionTimeoutMs } = plan;
  const ports = await freePorts(nodes.length);
  const shared = { sessionTimeoutMs, log };
  for (const [at, name] of nodes.entries()) {
    const line = await Line.before(store.url);
    const more = { ...(coordination ? { coordination } : {}), ...(grid ? { many: { grid, folder } } : {}) };
    const listen = `127.0.0.1:${ports[at]}`;
    const member = new Member({ ...shared, kind: "node", name, store: line.url, schema, listen, ...more });
    crew.push({ line, member });
  }
  const servers = ports.map((port) => `http://127.0.0.1:${port}`);
  if (!grid) for (const name of workers) hands.push(new Member({ ...shared, kind: "worker", name, servers, key }));
}

async function saveAll(definitions: readonly TaskDefinition[], tower: Carillon, ask: Asking): Promise<void> {
  for (let at = 0; at < definitions.length; at += savedAtOnce)
    await Promise.all(
      definitions
        .slice(at, at + savedAtOnce)
        .map((definition) =>
          ask({ kind: "save", task: definition.name, definition }, async (reason) =>
            String((await tower.save(definition, { reason })).changed),
          ),
        ),
    );
}

/** Adds to the account ends of processes that the test did not cause, the faults after which runs stayed overdue, and other violations. */
function withTroubles<Sum extends Account>(
  sum: Sum,
  all: readonly Member[],
  troubles: Soaked["faults"],
  others: readonly Violation[],
): Sum {
  sum.violations.push(...others);
  for (const what of all.flatMap(({ surprises }) => surprises))
    sum.violations.push({ invariant: "16: no process ends by itself", what });
  for (const { name, recoveredMs: ms, judged } of troubles)
    if (judged && !(ms <= recoveryMs))
      sum.violations.push({ invariant: "16: it recovers", what: `${name}: something was overdue ${ms} ms later` });
  return sum;
}

/** Reads the records of starts as they are written, and logs each minute how many slots were due and started. */
async function counting(plan: SoakPlan, slots: ManySlots, starts: StartReader, over: AbortSignal): Promise<void> {
  for (let nextMs = Date.now() + countedMs; !over.aborted; nextMs += countedMs) {
    await until(nextMs, over);
    starts.take(slots);
    const share = (Date.now() - slots.firstMs) / (slots.endMs - slots.firstMs);
    const due = Math.round(Math.min(1, Math.max(0, share)) * slots.grid.tasks * slots.grid.rounds);
    plan.record({ kind: "minute", due, started: slots.started });
  }
}

interface Trouble {
  readonly plan: SoakPlan;
  readonly stage: Stage;
  readonly sampler: Sampler;
  readonly machine: MachineLoad;
  readonly beganMs: number;
  /** No fault begins after this time. */
  readonly healMs: number;
  readonly over: AbortSignal;
}

/**
 * Applies one fault after the other; waits after each until no run is overdue, for at most about twice `recoveryMs`.
 * @returns the faults
 */
async function troubled({ plan, stage, sampler, machine, beganMs, healMs, over }: Trouble): Promise<Soaked["faults"]> {
  const troubles: Soaked["faults"] = [];
  const betweenMs = 60_000 / plan.faultsPerMinute;
  let nextMs = beganMs + Math.min(betweenMs, 10_000);
  for (const fault of inTurn(plan.random, plan.grid ? faultsOfNodes : faults)) {
    if (nextMs > healMs || over.aborted) break;
    await until(nextMs, over);
    if (over.aborted) break;
    const atMs = Date.now();
    machine.take();
    await fault.run(stage);
    const healedMs = Date.now();
    const recoveredMs = await recovery(sampler, over);
    const stoodMs = machine.take();
    const judged = stoodMs <= stoodMsMax;
    troubles.push({ atMs, name: fault.name, recoveredMs, judged });
    plan.record({ kind: "fault", name: fault.name, at: new Date(atMs), overMs: healedMs - atMs, recoveredMs, judged });
    plan.say(
      `${minutes(atMs - beganMs)}  ${fault.name}: over after ${healedMs - atMs} ms, nothing overdue ${recoveredMs} ms later${judged ? "" : ` (not judged: the machine had no room for ${stoodMs} ms)`}`,
    );
    nextMs = Math.max(nextMs + betweenMs, Date.now() + 1_000);
  }
  return troubles;
}

const quiet = () => undefined;
const minutes = (ms: number) => `${(ms / 60_000).toFixed(1).padStart(6)} min`;

type Asking = (
  asked: Pick<Operation, "kind" | "task"> & Partial<Pick<Operation, "definition" | "dueMs">>,
  work: (id: string, operation: Operation) => Promise<string>,
) => Promise<void>;

/** Returns a function that runs an operation and records its times and its outcome. */
function asker(operations: Operation[]): Asking {
  let count = 0;
  return async (asked, work) => {
    const invokedMs = Date.now();
    const operation: Operation = {
      id: `op${++count}`,
      node: "soak",
      invokedMs,
      invokedStoreMs: invokedMs,
      endedMs: null,
      endedStoreMs: null,
      outcome: "unknown",
      ...asked,
    };
    operations.push(operation);
    try {
      operation.answer = await work(operation.id, operation);
      operation.outcome = "ok";
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      operation.outcome = error.code.startsWith("STORE_") || error.code === "STOPPED" ? "unknown" : "refused";
      operation.answer = error.message;
    }
    operation.endedMs = operation.endedStoreMs = Date.now();
  };
}

interface Enqueueing {
  readonly tower: Carillon;
  readonly ask: Asking;
  readonly random: () => number;
  readonly over: AbortSignal;
}

async function enqueueing(
  { tower, ask, random, over }: Enqueueing,
  task: string,
  { everyMs, aheadMs }: { everyMs: number; aheadMs: number },
): Promise<void> {
  while (!over.aborted) {
    const inMs = Math.round(random() * aheadMs);
    await ask({ kind: "enqueue", task, dueMs: Date.now() + inMs }, async (id, operation) => {
      const { runId, created } = await tower.enqueue(task, { id }, { key: id, ...(inMs > 0 ? { in: inMs } : {}) });
      operation.run = runId;
      operation.created = created;
      return `run ${runId}`;
    });
    await until(Date.now() + everyMs * (0.5 + random()), over);
  }
}

async function sampling(sampler: Sampler, members: Member[], log: StartLog, over: AbortSignal): Promise<void> {
  for (let nextMs = Date.now(); !over.aborted; nextMs += sampleMs) {
    await until(nextMs, over);
    await sampler.lookAtProcesses(members, steady);
    await sampler.lookAtStore();
    sampler.lookAtLateness(log);
  }
}

/** @returns ms until no run was overdue or the test was aborted; about twice `recoveryMs` at most */
async function recovery(sampler: Sampler, over: AbortSignal): Promise<number> {
  const fromMs = Date.now();
  while (!over.aborted && Date.now() - fromMs < 2 * recoveryMs) {
    const seen = sampler.samples.length;
    await sampler.lookAtStore();
    const overdue = sampler.samples.slice(seen).find(({ name }) => name === "overdue runs");
    if (overdue?.value === 0) break;
    await until(Date.now() + 500, over);
  }
  return Date.now() - fromMs;
}

async function until(atMs: number, over: AbortSignal): Promise<void> {
  const forMs = atMs - Date.now();
  if (forMs <= 0 || over.aborted) return;
  await pause(forMs, undefined, { signal: over }).catch(() => undefined); // rejects if aborted; the caller checks `over`
}

async function freePorts(count: number): Promise<number[]> {
  const probes = await Promise.all(
    Array.from({ length: count }, async () => {
      const probe = createServer();
      await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
      return probe;
    }),
  );
  const ports = probes.map((probe) => (probe.address() as { port: number }).port);
  await Promise.all(probes.map((probe) => new Promise((resolve) => probe.close(resolve))));
  return ports;
}
