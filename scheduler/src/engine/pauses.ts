import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { TaskStore } from "../task/task-store.ts";
import { SingleFlight } from "./single-flight.ts";

export interface PausesOptions {
  store: { tasks: Pick<TaskStore, "endPauses" | "pauseFailing"> };
  membership: Pick<Membership, "term" | "node">;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
}

/**
 * Guarantees that a paused task is resumed when the pause ends, and that a task is paused after `pauseAfter` consecutive failed runs. The
 * leader does this. Heartbeats and signals of changes report when the next pause ends; a signal of each failure names the task. Two leaders
 * at once do no harm, because the store lets each pause begin and end only once.
 */
export class Pauses {
  readonly #options: PausesOptions;
  readonly #flight: SingleFlight;
  readonly #failing: SingleFlight;
  /** Tasks with failed runs since the last check; null: any task, because signals may have been lost. */
  #failed: Set<number> | null = null;
  #cancelTimer: () => void = () => undefined;
  #stopped = false;

  constructor(options: PausesOptions) {
    this.#options = options;
    this.#flight = new SingleFlight("ends of pauses", options.log, () => this.#look());
    this.#failing = new SingleFlight("failures in a row", options.log, () => this.#pauseFailing());
  }

  onPulse({ nextPauseEndMs }: Pulse): void {
    if (nextPauseEndMs !== null && nextPauseEndMs !== undefined) this.#wakeAt(nextPauseEndMs);
  }

  run(): void {
    if (this.#options.membership.term() !== null) void this.#flight.run();
  }

  /** @param taskId a task with `pauseAfter` whose run failed; null: any task, because signals may have been lost */
  onFailing(taskId: number | null): void {
    if (this.#options.membership.term() === null) return;
    if (taskId === null) this.#failed = null;
    else this.#failed?.add(taskId);
    void this.#failing.run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer();
    await Promise.all([this.#flight.stop(), this.#failing.stop()]);
  }

  async #pauseFailing(): Promise<void> {
    const { store, membership, storeClock, log } = this.#options;
    const change = { author: membership.node, reason: "", nowMs: storeClock.now() };
    const failed = this.#failed && [...this.#failed];
    this.#failed = new Set();
    let tasks: string[];
    try {
      tasks = await store.tasks.pauseFailing(failed, change);
    } catch (error) {
      this.#failed = null;
      throw error;
    }
    if (tasks.length > 0) log.warn({ tasks }, "paused tasks of which as many runs failed in a row as they say");
  }

  async #look(): Promise<void> {
    const { store, membership, storeClock, log } = this.#options;
    const change = { author: membership.node, reason: "", nowMs: storeClock.now() };
    const { resumed, nextMs } = await store.tasks.endPauses(change);
    if (resumed.length > 0) log.info({ tasks: resumed }, "resumed tasks whose pause is over");
    if (nextMs !== null && !this.#stopped) this.#wakeAt(nextMs);
  }

  #wakeAt(atMs: number): void {
    const { clock, storeClock } = this.#options;
    this.#cancelTimer();
    this.#cancelTimer = clock.after(storeClock.until(atMs), () => this.run());
  }
}
