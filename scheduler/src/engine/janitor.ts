import { type Clock, settlesWithin } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import { changesSweptMs, type Sweep } from "../cluster/sweeps.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { hourMs, hourOf } from "../task/statistics/statistics.ts";
import { SingleFlight } from "./single-flight.ts";

export interface JanitorOptions {
  store: Store;
  membership: Membership;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  keepMs: number;
  /** For how long a release still counts as present after its last process was seen, in ms. */
  releaseGraceMs: number;
}

const rotateEveryMs = hourMs;
const dayMs = 86_400_000;
const foldEveryMs = 60_000;
/** Counters that are folded within this many ms after a full hour belong to the hour before it. */
const hourSlackMs = 10_000;
/** The longest interval between two folds of counters, in ms: each fold that finds nothing doubles the interval up to this. */
const foldAtLeastEveryMs = 240_000;
const countersPerFold = 50_000;
/** The interval in ms at which a sweep is repeated while the store may contain something for it. */
const sweepEveryMs = 60_000;
/** The leader's heartbeats report every 30 s which sweeps are needed. A report that is older than this, in ms, no longer counts. */
const reportLastsMs = 60_000;
/** How long the next sweep waits for the one before it, in ms: another transaction may hold a lock for minutes. */
const sweepWaitMs = 5_000;
/** The interval in ms at which the sizes of the namespaces' histories are estimated; only namespaces with a quota of history need this. */
const measureEveryMs = 600_000;
const looksPerGrace = 4;
const toldAtMost = 20;
/**
 * Guarantees that a partition to write to always exists; that history older than the retention is deleted; that there are few unfolded
 * counter rows and ended sessions; that each quota of history has an estimate; that no run keeps a state of its task from before a change,
 * or waits for a pause that is over; that a task with `atEnd: "remove"` is removed when its schedule is over; and that no task keeps a
 * definition that no live process contains, while a live process contains another. The leader does all this. Partitions are created days
 * ahead, so no write waits for the leader.
 *
 * The leader's heartbeats report for which sweeps the store may contain something. The others are left out, so that an idle cluster sends
 * only heartbeats. Without a recent report, all sweeps are made.
 */
export class Janitor {
  readonly #options: JanitorOptions;
  /** Rotation is an operation of its own, so that the janitor's other operations continue if a partition of history cannot be dropped. */
  readonly #rotation: SingleFlight;
  readonly #look: SingleFlight;
  readonly #folding: SingleFlight;
  readonly #releases: SingleFlight;
  readonly #sizes: SingleFlight;
  readonly #sweeps: readonly (readonly [Sweep, SingleFlight])[];
  /** The sweeps that are being made. */
  readonly #flying = new Set<Sweep>();
  /** The last report of the sweeps that are needed, and when it was received. */
  #report: { needed: ReadonlySet<Sweep>; atMono: number } | undefined;
  readonly #sweptAt = new Map<Sweep, number>();
  #rotatedAt = Number.NEGATIVE_INFINITY;
  /** The day of the last rotation, in days since 1970 by the store's clock. */
  #rotatedDay = Number.NEGATIVE_INFINITY;
  #foldedAt = Number.NEGATIVE_INFINITY;
  #foldWaitMs = foldEveryMs;
  /** The hour, by the store's clock, in which counters were last folded. */
  #foldedHour: number;

  constructor(options: JanitorOptions) {
    this.#options = options;
    this.#foldedHour = this.#hour();
    this.#rotation = new SingleFlight("history's rotation", options.log, () => this.#rotate());
    this.#look = new SingleFlight("look for what changes left behind", options.log, () => this.#sweep());
    this.#releases = new SingleFlight("look for definitions that nobody stands behind", options.log, () =>
      this.#lookAtReleases(),
    );
    this.#sizes = new SingleFlight("estimate of the history's sizes", options.log, () => {
      this.#sweptAt.set("historySizes", options.clock.monotonic());
      return options.store.quotas.measureHistory(options.storeClock.now(), measureEveryMs);
    });
    const sweeps: readonly (readonly [Sweep, (nowMs: number) => Promise<void>])[] = [
      ["changedTasks", (nowMs) => this.#takeUpLeft(nowMs)],
      ["expiredRuns", (nowMs) => this.#endExpired(nowMs)],
      ["knownKeys", (nowMs) => options.store.runs.forgetKeys(nowMs)],
      ["auditRows", () => options.store.audit.chainSkipped()],
      ["workerKeys", (nowMs) => this.#revokeExpired(nowMs)],
      ["endedTasks", (nowMs) => this.#removeEnded(nowMs)],
      ["sessions", (nowMs) => options.store.sessions.sweep(nowMs, options.keepMs)],
    ];
    this.#sweeps = sweeps.map(([sweep, make]) => [
      sweep,
      new SingleFlight(`sweep of ${sweep}`, options.log, () => make(options.storeClock.now())),
    ]);
    this.#folding = new SingleFlight("folding of counters", options.log, () => this.#fold());
  }

  onPulse({ sweeps }: Pick<Pulse, "sweeps">): void {
    const { membership, clock, releaseGraceMs } = this.#options;
    if (membership.term() === null) {
      this.#report = undefined;
      return;
    }
    const mono = clock.monotonic();
    if (sweeps) this.#report = { needed: new Set(sweeps), atMono: mono };
    if (this.#isRotationDue()) void this.#rotation.run();
    if (this.#sweeps.some(([sweep]) => this.#isDue(sweep))) void this.#look.run();
    if (this.#isDue("releases", releaseGraceMs / looksPerGrace)) void this.#releases.run();
    if (this.#isDue("historySizes")) void this.#sizes.run();
    // Counters that are written after this wait for the next report, and not for the end of a longer interval.
    if (sweeps && !this.#mayFind("counters")) this.#foldWaitMs = foldEveryMs;
    const isFoldDue = mono - this.#foldedAt >= this.#foldWaitMs && this.#mayFind("counters");
    if (isFoldDue || this.#hour() !== this.#foldedHour) void this.#folding.run();
  }

  #isDue(sweep: Sweep, everyMs = sweepEveryMs): boolean {
    const sweptAt = this.#sweptAt.get(sweep) ?? Number.NEGATIVE_INFINITY;
    return this.#options.clock.monotonic() - sweptAt >= everyMs && this.#mayFind(sweep);
  }

  #mayFind(sweep: Sweep): boolean {
    const { clock, releaseGraceMs } = this.#options;
    if (!this.#report || clock.monotonic() - this.#report.atMono > reportLastsMs) return true;
    // A grace period that is shorter than a report lasts could be over before the next report.
    return this.#report.needed.has(sweep) || (sweep === "releases" && releaseGraceMs < reportLastsMs);
  }

  async stop(): Promise<void> {
    await Promise.all([
      ...this.#sweeps.map(([, flight]) => flight.stop()),
      this.#rotation.stop(),
      this.#look.stop(),
      this.#folding.stop(),
      this.#releases.stop(),
      this.#sizes.stop(),
    ]);
  }

  /**
   * Rotation is due every hour, and as soon as the store's date is two or more days from that of the last rotation: then runs may be
   * impossible to plan or end, because partitions may be missing. That happens if the store's clock steps, or if this machine sleeps (its
   * monotonic clock then stands still). The next day's partition exists already, so midnight, a busy time, needs no rotation.
   */
  #isRotationDue(): boolean {
    const { clock, storeClock } = this.#options;
    const days = Math.abs(Math.floor(storeClock.now() / dayMs) - this.#rotatedDay);
    return days > 1 || clock.monotonic() - this.#rotatedAt >= rotateEveryMs;
  }

  async #rotate(): Promise<void> {
    const { store, clock, storeClock, keepMs, log } = this.#options;
    const forMs = storeClock.now();
    const { dropped } = await store.history.rotate(forMs, keepMs);
    if (dropped.length > 0) log.info({ dropped }, "dropped history past its retention");
    await store.access.sweep(storeClock.now());
    await store.sessions.sweep(storeClock.now(), keepMs);
    await store.tasks.forgetReleases(forMs - keepMs);
    this.#rotatedAt = clock.monotonic();
    this.#rotatedDay = Math.floor(forMs / dayMs);
  }

  /** Makes the sweeps that are due, one after the other, so that few connections are used. A slow one does not delay the others. */
  async #sweep(): Promise<void> {
    const { clock } = this.#options;
    for (const [sweep, flight] of this.#sweeps) {
      if (!this.#isDue(sweep) || this.#flying.has(sweep)) continue;
      this.#sweptAt.set(sweep, clock.monotonic());
      this.#flying.add(sweep);
      const made = flight.run().finally(() => this.#flying.delete(sweep));
      await settlesWithin(clock, sweepWaitMs, made);
    }
  }

  async #takeUpLeft(nowMs: number): Promise<void> {
    const { store, log } = this.#options;
    const taken = await store.tasks.takeUpLeft(nowMs - changesSweptMs, nowMs);
    if (taken > 0) log.info({ runs: taken }, "runs were left behind by a change of their task");
  }

  async #endExpired(nowMs: number): Promise<void> {
    const { store, log } = this.#options;
    const ended = await store.runs.endExpired(nowMs);
    if (ended > 0) log.info({ runs: ended }, "runs had not begun when they expired");
  }

  async #revokeExpired(nowMs: number): Promise<void> {
    const { store, membership, log } = this.#options;
    const expired = await store.workers.revokeExpired({ author: membership.node, reason: "it has expired", nowMs });
    if (expired.length > 0)
      log.warn({ keys: expired.slice(0, toldAtMost) }, "worker keys have expired: their workers are locked out");
  }

  async #removeEnded(nowMs: number): Promise<void> {
    const { store, membership, log } = this.#options;
    const removed = await store.tasks.removeEnded({ author: membership.node, reason: "", nowMs });
    if (removed.length > 0)
      log.info(
        { tasks: removed.slice(0, toldAtMost), removed: removed.length },
        "removed tasks whose schedules are over",
      );
  }

  async #lookAtReleases(): Promise<void> {
    const { store, membership, clock, storeClock, releaseGraceMs, log } = this.#options;
    this.#sweptAt.set("releases", clock.monotonic());
    const change = { author: membership.node, reason: "", nowMs: storeClock.now() };
    const adopted = await store.tasks.adoptLeft(releaseGraceMs, change);
    for (const { task, from, to } of adopted.slice(0, toldAtMost))
      log.warn(
        { task, from, to },
        "no process of the release that defined it is left: the task has another's definition",
      );
    if (adopted.length > toldAtMost)
      log.warn({ tasks: adopted.length }, "so many tasks in all have another release's definition now");
  }

  /** The present hour, counted from 1970, by the store's clock. */
  #hour(): number {
    return hourOf(this.#options.storeClock.now());
  }

  async #fold(): Promise<void> {
    const { store, clock, storeClock } = this.#options;
    this.#foldedAt = clock.monotonic();
    this.#foldedHour = this.#hour();
    const hour = hourOf(storeClock.now() - hourSlackMs);
    let folded = 0;
    let some: number;
    do {
      some = await store.tasks.foldCounters(countersPerFold, hour);
      folded += some;
    } while (some === countersPerFold);
    this.#foldWaitMs = folded > 0 ? foldEveryMs : Math.min(this.#foldWaitMs * 2, foldAtLeastEveryMs);
  }
}
