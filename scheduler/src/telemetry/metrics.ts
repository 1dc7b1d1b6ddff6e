/**
 * A node's metrics for Prometheus. The values of labels are bounded: states, outcomes, parts of the store, and a limited number of groups;
 * no label contains a task, a run or a worker. See docs/reference/metrics.md.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram } from "prom-client";
import type { Clock } from "../base/clock.ts";
import { isCarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { namespaceOf } from "../base/namespace.ts";
import { isMetered, isTraced } from "../base/trace-text.ts";
import { version } from "../base/version.ts";
import type { RunNotice } from "../run/handler.ts";
import type { PlanWrite } from "../slots/plan-store.ts";
import type { Figures } from "../store/figures.ts";
import type { Store } from "../store/store.ts";
import { Exemplars } from "./exemplars.ts";
import { type Exposed, exposed, registryOfBoth } from "./open-metrics.ts";
import type { Tracing } from "./tracing.ts";

const latenessBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const storeBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/** How long figures read from the store are cached, in ms; all scrapes share the cache. */
const figuresKeptMs = 5_000;
/**
 * The label is not called "namespace", because Prometheus in Kubernetes gives each target a label of that name and would rename
 * ours.
 */
const ofGroup = ["carillon_namespace", "group"];
const notParts = new Set(["clock", "close", "signals"]);

/** The state of this process at a scrape. */
export interface ProcessState {
  /** True while no other process may have declared this process dead; null if this process has not joined the cluster. */
  trusted: boolean | null;
  /** The number of runs that this process has claimed, and how many it executes at once; null if it executes no runs. */
  worker: { held: number; concurrency: number } | null;
}

export interface Scraped extends ProcessState {
  store: Store;
  nowMs: number;
  /** The term while this process is the leader; otherwise null. */
  term: number | null;
  /** The number of tasks that this process cannot plan. */
  unreadable: number;
}

export class Metrics {
  readonly #registry = registryOfBoth();
  readonly #clock: Clock;
  #figures: { at: number; read: Promise<Figures> } | undefined;
  #isScraped = false;
  readonly #traced = isTraced();

  readonly #lateness = this.#histogram(
    "carillon_run_lateness_seconds",
    "Seconds for which first tries waited for a worker or for the scheduler, not for their own limits: tries in this process, and in workers behind it",
    [],
    latenessBuckets,
    this.#traced,
  );
  readonly #duration = this.#histogram(
    "carillon_attempt_seconds",
    "Duration of the attempts that ended in this process",
    ["outcome"],
    [0.001, 0.01, 0.1, 1, 10, 60, 600, 3_600],
    this.#traced,
  );
  readonly #exhausted = this.#counter(
    "carillon_exhausted_total",
    "Runs that failed for good in this process after more than one attempt",
    [],
  );
  readonly #slots = this.#counter("carillon_slots_total", "Slots that this node planned, by outcome", ["outcome"]);
  readonly #calls = this.#histogram(
    "carillon_store_seconds",
    "Calls of the store by this process, by part of the store",
    ["part", "result"],
    storeBuckets,
  );
  readonly #beats = this.#histogram(
    "carillon_beat_seconds",
    "Duration of heartbeats, from the request to the answer",
    ["result"],
    storeBuckets,
  );
  readonly #ended = this.#counter(
    "carillon_ended_total",
    "Whole cluster: runs and slots that ended, and attempts that were tried again",
    ["outcome"],
  );
  readonly #live = this.#gauge("carillon_runs", "Whole cluster: live runs, each state counted up to 100,000", [
    "state",
  ]);
  readonly #age = this.#gauge(
    "carillon_queue_age_seconds",
    "Whole cluster: how long the oldest due run has waited for a worker",
    ["group"],
  );
  readonly #groupWorkers = this.#gauge(
    "carillon_group_workers",
    "Whole cluster: live workers of each group that has tasks which are not paused",
    ofGroup,
  );
  readonly #groupCapacity = this.#gauge(
    "carillon_group_capacity",
    "Whole cluster: how many runs the live workers of a group take at a time, also for their other groups",
    ofGroup,
  );
  readonly #snapshotAge = this.#gauge(
    "carillon_oldest_snapshot_seconds",
    "Store: age of the oldest snapshot that keeps dead rows, if the store reports when it began",
    ["kind"],
  );
  readonly #snapshotTransactions = this.#gauge(
    "carillon_oldest_snapshot_transactions",
    "Store: number of transactions that have begun since the oldest snapshot that keeps dead rows",
    ["kind"],
  );
  readonly #term = this.#gauge("carillon_term", "The newest term of leadership", []);
  readonly #led = this.#gauge("carillon_led", "1 while some node leads", []);
  readonly #leader = this.#gauge("carillon_leader", "1 while this node leads", []);
  readonly #unreadable = this.#gauge(
    "carillon_tasks_unreadable",
    "Tasks that this node cannot plan, because it cannot read their definition",
    [],
  );
  readonly #trusted = this.#gauge(
    "carillon_session_trusted",
    "1 while no other process may have declared this one dead; 0: it starts no run",
    [],
  );
  readonly #concurrency = this.#gauge("carillon_worker_concurrency", "How many runs this process runs at a time", []);
  readonly #held = this.#gauge("carillon_worker_held", "Runs that this process has claimed", []);
  readonly #up = this.#gauge("carillon_store_up", "1 when the store answered this scrape", []);

  readonly #exemplars = this.#traced ? new Exemplars(this.#lateness) : undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#gauge("carillon_info", "The version of this process", ["version"]).set({ version }, 1);
    for (const outcome of ["run", "skipped", "missed"]) this.#slots.inc({ outcome }, 0);
  }

  /** Wraps the store so that calls that return a promise are timed, except in the parts `notParts`. Results are returned unchanged. */
  around(store: Store): Store {
    const parts = Object.entries(store).map(([name, part]) => [
      name,
      notParts.has(name) ? part : this.#timed(name, part as object),
    ]);
    return Object.fromEntries(parts) as Store;
  }

  /** Records how late a run's first attempt started, in ms: in this process, or in a worker connected to this server. */
  started(lateMs: number): void {
    // With exemplars enabled, prom-client's `observe` takes an object instead of a number.
    if (this.#exemplars) this.#lateness.observe({ value: lateMs / 1_000 });
    else this.#lateness.observe(lateMs / 1_000);
  }

  notice(notice: RunNotice): void {
    const { kind, attempt, startedMs, endedMs, outcome } = notice;
    if (kind === "started") this.#exemplars?.started(notice);
    if (kind === "ended" && outcome === "failed" && attempt > 1) this.#exhausted.inc();
    if (kind === "started" || endedMs === null) return;
    const labels = { outcome: kind === "retry" ? "retried" : (outcome ?? kind) };
    const value = Math.max(0, endedMs - startedMs) / 1_000;
    if (this.#exemplars) this.#duration.observe({ labels, value, exemplarLabels: this.#exemplars.ended(notice.runId) });
    else this.#duration.observe(labels, value);
  }

  /** Links the metrics of runs in this process to the traces of these runs. */
  follow(tracing: Tracing | undefined): void {
    const exemplars = this.#exemplars;
    if (tracing && exemplars) tracing.onSpan = (runId, context) => exemplars.spanned(runId, context);
  }

  /**
   * Returns the metrics of a process without a store, which knows nothing of the cluster and plans no slots.
   * @param accept the Accept header of the request
   */
  async own(state: ProcessState, accept?: string): Promise<Exposed> {
    this.#showOwn(state);
    return this.#exposed(accept);
  }

  #showOwn(state: ProcessState): void {
    this.#showState(state);
    // These metrics are removed, because 0 would mean that no process leads and that the store cannot be reached.
    for (const metric of [this.#up, this.#term, this.#led, this.#leader, this.#unreadable]) metric.remove();
    this.#slots.reset();
  }

  /**
   * Also exports Carillon's own metrics (without those of Node.js) to OpenTelemetry, if the program has registered a provider of meters.
   * @param state returns the state of this process; called whenever the program's reader collects
   * @returns a function that ends the export
   */
  async export(state: () => Scraped | ProcessState): Promise<() => void> {
    if (!isMetered()) return () => undefined;
    const { exportMetrics } = await import("./otel-metrics.ts");
    const own = this.#registry.getMetricsAsArray().filter(({ name }) => name.startsWith("carillon_"));
    const refresh = async () => {
      const now = state();
      return "store" in now ? this.#showAll(now) : this.#showOwn(now);
    };
    try {
      return exportMetrics(own, refresh);
    } catch (error) {
      process.emitWarning(`the program's provider of meters threw, so no metrics are exported: ${String(error)}`);
      return () => undefined;
    }
  }

  /** Sets the metrics of this process's state. */
  #showState({ trusted, worker }: ProcessState): void {
    if (trusted === null) this.#trusted.remove();
    else this.#trusted.set(trusted ? 1 : 0);
    if (worker === null) for (const metric of [this.#concurrency, this.#held]) metric.remove();
    else {
      this.#concurrency.set(worker.concurrency);
      this.#held.set(worker.held);
    }
  }

  /**
   * Returns the metrics for a scrape by Prometheus. While the store is unreachable, it has only this process's own figures.
   * @param accept the Accept header of the request
   */
  async read(scraped: Scraped, accept?: string): Promise<Exposed> {
    await this.#showAll(scraped);
    return this.#exposed(accept);
  }

  /**
   * Returns the metrics for a scrape. The first call also registers metrics of memory, handles, garbage collection and event-loop
   * lag, which need a timer and therefore are not registered before a scrape.
   */
  #exposed(accept: string | undefined): Promise<Exposed> {
    if (!this.#isScraped) collectDefaultMetrics({ register: this.#registry });
    this.#isScraped = true;
    return exposed(this.#registry, accept);
  }

  async #showAll({ store, nowMs, term, unreadable, ...state }: Scraped): Promise<void> {
    this.#showState(state);
    this.#leader.set(term === null ? 0 : 1);
    this.#unreadable.set(unreadable);
    try {
      this.#show(await this.#figuresOf(store, nowMs), nowMs);
      this.#up.set(1);
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      this.#up.set(0);
      // Old figures are removed, because they would look like those of a cluster that makes no progress.
      const ofCluster = [this.#live, this.#age, this.#groupWorkers, this.#groupCapacity, this.#ended];
      for (const metric of [...ofCluster, this.#snapshotAge, this.#snapshotTransactions]) metric.reset();
      // These metrics have no labels, and a reset would set them to 0, which is a valid value, so they are removed.
      for (const metric of [this.#term, this.#led]) metric.remove();
    }
  }

  #figuresOf(store: Store, nowMs: number): Promise<Figures> {
    const at = this.#clock.monotonic();
    if (this.#figures && at - this.#figures.at < figuresKeptMs) return this.#figures.read;
    const read = store.figures.read(nowMs);
    this.#figures = { at, read };
    read.catch(() => {
      this.#figures = undefined; // the waiting callers receive the error; the next scrape reads again
    });
    return read;
  }

  #show({ ended, live, oldest, groups, leadership, snapshots }: Figures, nowMs: number): void {
    // The store counts ended runs for the whole cluster, so every node reports the same numbers.
    this.#ended.reset();
    for (const [outcome, count] of Object.entries(ended)) this.#ended.inc({ outcome }, count);
    this.#live.reset();
    for (const [state, count] of Object.entries(live)) this.#live.set({ state }, count);
    this.#age.reset();
    for (const [n, { group, dueMs }] of oldest.entries())
      this.#age.set({ group: n < limits.shownGroups ? group : "(others)" }, Math.max(0, nowMs - dueMs) / 1_000);
    this.#showGroups(groups);
    for (const metric of [this.#snapshotAge, this.#snapshotTransactions]) metric.reset();
    for (const { kind, ms, transactions } of snapshots) {
      if (ms !== null) this.#snapshotAge.set({ kind }, ms / 1_000);
      this.#snapshotTransactions.set({ kind }, transactions);
    }
    this.#term.set(leadership.term);
    this.#led.set(leadership.led ? 1 : 0);
  }

  /** Sets the metrics of workers and capacity. The last group is the first of those that are not shown, and its name is "(others)". */
  #showGroups(groups: Figures["groups"]): void {
    for (const metric of [this.#groupWorkers, this.#groupCapacity]) metric.reset();
    for (const [n, { group, workers, capacity }] of groups.entries()) {
      const labels =
        n < limits.shownGroups
          ? { carillon_namespace: namespaceOf(group), group }
          : { carillon_namespace: "(others)", group: "(others)" };
      this.#groupWorkers.set(labels, workers);
      this.#groupCapacity.set(labels, capacity);
    }
  }

  #timed(name: string, part: object): unknown {
    return new Proxy(part, {
      get: (target, method, receiver) => {
        const value: unknown = Reflect.get(target, method, receiver);
        if (typeof value !== "function") return value;
        return (...given: unknown[]) => {
          const began = this.#clock.monotonic();
          const result: unknown = Reflect.apply(value, target, given);
          if (!(result instanceof Promise)) return result;
          const done = (word: "ok" | "error") => {
            const seconds = (this.#clock.monotonic() - began) / 1_000;
            this.#calls.observe({ part: name, result: word }, seconds);
            if (method === "beat") this.#beats.observe({ result: word }, seconds);
          };
          result.then(
            (answer: unknown) => {
              done("ok");
              if (name === "plans" && method === "accept")
                this.#accepted(given[1] as PlanWrite[], (answer as { taken: Set<number> }).taken);
            },
            () => done("error"), // the caller also receives the error
          );
          return result;
        };
      },
    });
  }

  #accepted(writes: readonly PlanWrite[], taken: ReadonlySet<number>): void {
    for (const { taskId, slots, missed } of writes) {
      if (!taken.has(taskId)) continue;
      for (const { skipped } of slots) this.#slots.inc({ outcome: skipped === undefined ? "run" : "skipped" });
      for (const { count, outcome } of missed) this.#slots.inc({ outcome: outcome ?? "missed" }, count ?? 0);
    }
  }

  #histogram(name: string, help: string, labelNames: string[], buckets: number[], enableExemplars = false) {
    return new Histogram({ name, help, labelNames, buckets, enableExemplars, registers: [this.#registry] });
  }

  #counter(name: string, help: string, labelNames: string[]) {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, labelNames: string[]) {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] });
  }
}
