import { type Clock, EarliestTimer } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { AddressWrite, RouteView, UnaddressedRun } from "../run/route-store.ts";
import { choose, eligible, type LiveWorker, turnTaken } from "../run/routing.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { SingleFlight } from "./single-flight.ts";

export interface RouterOptions {
  store: Store;
  membership: Membership;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  graceMs: number;
  /** For how long a release (a version of the application) still counts as present after its last worker has ended, in ms. */
  releaseGraceMs: number;
  random: Random;
}

/** How long before their due time runs are addressed, in ms; longer than workers claim ahead, so that these runs start on time. */
const aheadMs = 2_000;
/** An addressed run that has not been claimed this long after its due time, in ms, goes to another worker, if the route allows that. */
const lateMs = 5_000;
const runsPerView = 500;

/**
 * Guarantees that a run of a task with a route is addressed to a worker shortly before the run is due. The leader does this at once, other
 * nodes `graceMs` later. The leader also withdraws runs from workers that no longer exist. If two routers choose workers for a task at the
 * same time, only one router's choices are written.
 */
export class Router {
  readonly #options: RouterOptions;
  readonly #flight: SingleFlight;
  readonly #sweep: SingleFlight;
  readonly #timer: EarliestTimer;
  #sessions: Set<number> | undefined;

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#flight = new SingleFlight("router", options.log, () => this.#route());
    this.#sweep = new SingleFlight("router", options.log, () => this.#withdraw());
    this.#timer = new EarliestTimer(options.clock, () => void this.#flight.run());
  }

  onPulse({ nextDirectMs, directed }: Pulse): void {
    if (nextDirectMs != null) this.onDirect(nextDirectMs);
    if (directed && this.#options.membership.term() !== null) void this.#sweep.run();
  }

  /** Called when a run that is due at `dueMs` has no addressee. */
  onDirect(dueMs: number): void {
    const { storeClock, membership, graceMs } = this.#options;
    this.#timer.within(storeClock.until(dueMs - aheadMs) + (membership.term() === null ? graceMs : 0));
  }

  async stop(): Promise<void> {
    this.#timer.close();
    await Promise.all([this.#flight.stop(), this.#sweep.stop()]);
  }

  async #route(): Promise<void> {
    const { store, membership, storeClock, releaseGraceMs } = this.#options;
    const waiting = new Set<number>();
    while (membership.trusted()) {
      const nowMs = storeClock.now();
      const view = await store.routes.view(nowMs + aheadMs, runsPerView, [...waiting], nowMs - releaseGraceMs);
      const done = await this.#address(view);
      // Runs that no worker can run now are left for the next heartbeat, so that the runs after them need not wait.
      for (const { taskId } of view.tasks) if (!done.has(taskId)) waiting.add(taskId);
      if (done.size > 0 || view.more) continue;
      if (view.nextDueMs !== null) this.onDirect(view.nextDueMs);
      return;
    }
  }

  /**
   * Addresses the runs of a view to workers; splits and gives up runs where the route requires it.
   * @returns the tasks of which a run was addressed, split or given up (except parts of a broadcast), and those whose runs
   * another router has addressed meanwhile
   */
  async #address(view: RouteView): Promise<Set<number>> {
    const { store } = this.#options;
    const done = new Set<number>();
    const writes: AddressWrite[] = [];
    const loads = new Map(view.workers.map(({ sessionId, load }) => [sessionId, load]));
    for (const task of view.tasks) {
      const { definition, taskId } = task;
      const workers = view.workers.filter(
        ({ groups, canRun }) => groups.includes(definition.group) && (canRun === null || canRun.includes(taskId)),
      );
      const held = new Map(Object.entries(task.held).map(([id, runs]) => [Number(id), runs]));
      let turns: ReadonlyMap<string, number> = new Map(Object.entries(task.turns));
      for (const run of view.runs.filter((one) => one.taskId === taskId)) {
        const live = workers.map(
          (worker): LiveWorker => ({
            ...worker,
            load: loads.get(worker.sessionId) ?? 0,
            ofTask: held.get(worker.sessionId) ?? 0,
          }),
        );
        const by = definition.route?.by;
        if ((by === "broadcast" || by === "shards") && run.shard === null) {
          const all = by === "broadcast" ? eligible(definition, live) : null;
          if (all?.length === 0) continue;
          const total = definition.route?.by === "shards" ? definition.route.shards : (all?.length ?? 0);
          await store.routes.split(run.runId, total, all);
          done.add(taskId);
          continue;
        }
        const chosen = choose(definition, live, run, turns, this.#options.random);
        if (chosen === "wait") {
          if (by === "broadcast") await this.#giveUp(run, definition.graceMs);
          continue;
        }
        if (chosen === "fail") {
          await store.routes.giveUp(run.runId, run.release, this.#options.storeClock.now());
          done.add(taskId);
          continue;
        }
        const { sessionId, node } = chosen;
        turns = turnTaken(turns, node);
        writes.push({ runId: run.runId, taskId, sessionId, node, turn: turns.get(node) as number });
        loads.set(sessionId, (loads.get(sessionId) ?? 0) + 1);
        held.set(sessionId, (held.get(sessionId) ?? 0) + 1);
      }
    }
    if (writes.length === 0) return done;
    const { addressed, overtaken } = await store.routes.address(writes, this.#options.storeClock.now());
    for (const { runId, taskId } of writes) if (addressed.has(runId) || overtaken.has(taskId)) done.add(taskId);
    return done;
  }

  /**
   * Ends a part of a broadcast whose worker is gone, because no other worker may run the part. If the worker may have begun the part, waits
   * for the worker's return until the task's grace period has passed after the due time.
   */
  async #giveUp({ runId, attempt, dueMs }: UnaddressedRun, graceMs: number): Promise<void> {
    const { store, storeClock } = this.#options;
    const atMs = attempt === 0 ? 0 : dueMs + graceMs;
    if (storeClock.now() < atMs) this.#timer.within(storeClock.until(atMs));
    else await store.routes.giveUp(runId, null, storeClock.now());
  }

  async #withdraw(): Promise<void> {
    const { store, membership, storeClock } = this.#options;
    if (!membership.trusted()) return;
    const known = this.#sessions;
    const sessions = await store.routes.sessions();
    this.#sessions = new Set(sessions);
    while ((await store.routes.withdraw(null)) > 0);
    await store.routes.withdraw(storeClock.now() - lateMs);
    if (known && sessions.some((id) => !known.has(id))) await store.routes.spread();
  }
}
