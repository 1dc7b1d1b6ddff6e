import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
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
const lookEveryMs = 60_000;
/** The interval in ms at which the sizes of the namespaces' histories are estimated; only namespaces with a quota of history need this. */
const measureEveryMs = 600_000;
const looksPerGrace = 4;
const toldAtMost = 20;
/**
 * The longest expected duration, in ms, of a transaction in which an application enqueues runs. A change of a task does not see a run that
 * such an open transaction has inserted; the janitor searches for such runs after changes that are up to this old.
 */
const enqueuingMs = 600_000;

/**
 * Guarantees that a partition to write to always exists; that history older than the retention is deleted; that there are few
 * unfolded counter rows and ended sessions; that each quota of history has an estimate; that no run keeps a state of its task
 * from before a change, or waits for a pause that is over; that a task with `atEnd: "remove"` is removed when its schedule is
 * over; that runs and worker keys that have expired are ended or revoked; and that no task keeps a definition that no live
 * process contains, while a live process contains another. The leader does all this. Partitions are created days ahead, so no
 * write waits for the leader.
 */
export class Janitor {
  readonly #options: JanitorOptions;
  /** Rotation is an operation of its own, so that the janitor's other operations continue if a partition of history cannot be dropped. */
  readonly #rotation: SingleFlight;
  readonly #look: SingleFlight;
  readonly #folding: SingleFlight;
  readonly #releases: SingleFlight;
  readonly #sizes: SingleFlight;
  #rotatedAt = Number.NEGATIVE_INFINITY;
  /** The day of the last rotation, in days since 1970 by the store's clock. */
  #rotatedDay = Number.NEGATIVE_INFINITY;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #releasesAt = Number.NEGATIVE_INFINITY;
  #sizesAt = Number.NEGATIVE_INFINITY;
  #foldedAt: number;
  #foldWaitMs = foldEveryMs;
  /** The hour, by the store's clock, in which counters were last folded. */
  #foldedHour: number;

  constructor(options: JanitorOptions) {
    this.#options = options;
    this.#foldedAt = options.clock.monotonic();
    this.#foldedHour = this.#hour();
    this.#rotation = new SingleFlight("history's rotation", options.log, () => this.#rotate());
    this.#look = new SingleFlight("look for what changes left behind", options.log, () => this.#takeUp());
    this.#releases = new SingleFlight("look for definitions that nobody stands behind", options.log, () =>
      this.#lookAtReleases(),
    );
    this.#sizes = new SingleFlight("estimate of the history's sizes", options.log, () => {
      this.#sizesAt = options.clock.monotonic();
      return options.store.quotas.measureHistory(options.storeClock.now(), measureEveryMs);
    });
    this.#folding = new SingleFlight("folding of counters", options.log, () => this.#fold());
  }

  onPulse(): void {
    if (this.#options.membership.term() === null) return;
    const mono = this.#options.clock.monotonic();
    if (this.#isRotationDue()) void this.#rotation.run();
    if (mono - this.#lookedAt >= lookEveryMs) void this.#look.run();
    if (mono - this.#releasesAt >= this.#options.releaseGraceMs / looksPerGrace) void this.#releases.run();
    if (mono - this.#sizesAt >= lookEveryMs) void this.#sizes.run();
    if (mono - this.#foldedAt >= this.#foldWaitMs || this.#hour() !== this.#foldedHour) void this.#folding.run();
  }

  async stop(): Promise<void> {
    await Promise.all([
      this.#rotation.stop(),
      this.#look.stop(),
      this.#folding.stop(),
      this.#releases.stop(),
      this.#sizes.stop(),
    ]);
  }

  /**
   * Rotation is due every hour, and also after the store's clock has stepped, or this machine has slept (its monotonic clock does
   * not count that time), by more than a day, because no run could be planned or ended beyond the existing partitions. A change
   * of date alone does not make it due: the next day's partition exists already, and midnight is a busy time.
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
    await store.tasks.forgetReleases(forMs - keepMs);
    this.#rotatedAt = clock.monotonic();
    this.#rotatedDay = Math.floor(forMs / dayMs);
  }

  async #takeUp(): Promise<void> {
    const { store, membership, clock, storeClock, log } = this.#options;
    this.#lookedAt = clock.monotonic();
    const nowMs = storeClock.now();
    const taken = await store.tasks.takeUpLeft(nowMs - enqueuingMs, nowMs);
    if (taken > 0) log.info({ runs: taken }, "runs were left behind by a change of their task");
    const ended = await store.runs.endExpired(nowMs);
    if (ended > 0) log.info({ runs: ended }, "runs had not begun when they expired");
    await store.runs.forgetKeys(nowMs);
    await store.audit.chainSkipped();
    const expired = await store.workers.revokeExpired({ author: membership.node, reason: "it has expired", nowMs });
    if (expired.length > 0)
      log.warn({ keys: expired.slice(0, toldAtMost) }, "worker keys have expired: their workers are locked out");
    const removed = await store.tasks.removeEnded({ author: membership.node, reason: "", nowMs });
    if (removed.length > 0)
      log.info(
        { tasks: removed.slice(0, toldAtMost), removed: removed.length },
        "removed tasks whose schedules are over",
      );
  }

  async #lookAtReleases(): Promise<void> {
    const { store, membership, clock, storeClock, releaseGraceMs, log } = this.#options;
    this.#releasesAt = clock.monotonic();
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
    const { store, clock, storeClock, keepMs } = this.#options;
    this.#foldedAt = clock.monotonic();
    this.#foldedHour = this.#hour();
    const hour = hourOf(storeClock.now() - hourSlackMs);
    await store.sessions.sweep(storeClock.now(), keepMs);
    let folded = 0;
    let some: number;
    do {
      some = await store.tasks.foldCounters(countersPerFold, hour);
      folded += some;
    } while (some === countersPerFold);
    this.#foldWaitMs = folded > 0 ? foldEveryMs : Math.min(this.#foldWaitMs * 2, foldAtLeastEveryMs);
  }
}
