import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { TaskStore } from "../task/task-store.ts";
import { SingleFlight } from "./single-flight.ts";

export interface PausesOptions {
  store: { tasks: Pick<TaskStore, "endPauses"> };
  membership: Pick<Membership, "term" | "node">;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
}

/**
 * Makes true: a task that is paused until a time is resumed then. The leader's work; a pulse and a signal of a change tell it when the
 * next pause ends. Two leaders at once do no harm, since the store ends a pause once.
 */
export class Pauses {
  readonly #options: PausesOptions;
  readonly #flight: SingleFlight;
  #cancelTimer: () => void = () => undefined;
  #stopped = false;

  constructor(options: PausesOptions) {
    this.#options = options;
    this.#flight = new SingleFlight("ends of pauses", options.log, () => this.#look());
  }

  onPulse({ nextPauseEndMs }: Pulse): void {
    if (nextPauseEndMs !== null && nextPauseEndMs !== undefined) this.#wakeAt(nextPauseEndMs);
  }

  run(): void {
    if (this.#options.membership.term() !== null) void this.#flight.run();
  }

  stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer();
    return this.#flight.stop();
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
