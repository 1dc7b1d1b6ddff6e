import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { TaskStore } from "../task/task-store.ts";
import { SingleFlight } from "./single-flight.ts";

export interface ZoneKeeperOptions {
  store: { tasks: Pick<TaskStore, "followZones"> };
  membership: Pick<Membership, "term" | "node">;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
}

const lookEveryMs = 3_600_000;

/**
 * Guarantees that tasks are planned with the newest time zone database among the scheduler nodes. Each node records its own database when
 * the node starts, and replans the tasks whose zones have other rules there. Every hour the leader searches for tasks that were left out,
 * for example because a node ended while it replanned.
 */
export class ZoneKeeper {
  readonly #options: ZoneKeeperOptions;
  readonly #flight: SingleFlight;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ZoneKeeperOptions) {
    this.#options = options;
    this.#flight = new SingleFlight("look for changed time zones", options.log, () => this.#look());
  }

  onPulse(): void {
    const { clock, membership } = this.#options;
    const isFirst = this.#lookedAt === Number.NEGATIVE_INFINITY;
    const isDue = membership.term() !== null && clock.monotonic() - this.#lookedAt >= lookEveryMs;
    if (isFirst || isDue) void this.#flight.run();
  }

  stop(): Promise<void> {
    return this.#flight.stop();
  }

  async #look(): Promise<void> {
    const { store, membership, clock, storeClock, log } = this.#options;
    const change = { author: membership.node, reason: "", nowMs: storeClock.now() };
    const { changed, replanned, left } = await store.tasks.followZones(change);
    this.#lookedAt = clock.monotonic();
    for (const { zone, from, to } of changed)
      log.warn(
        { zone, from, to },
        "this node's time zone data is newer, and has other rules for the zone: they are in force now",
      );
    if (left.length > 0)
      log.error(
        { ...left[0], tasks: left.length },
        "this process cannot plan the task by the newer rules of its time zone, nor others like it",
      );
    if (replanned > 0) log.warn({ tasks: replanned }, "tasks were planned anew by the newer rules of their time zone");
  }
}
