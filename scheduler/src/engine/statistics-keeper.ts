import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { dayHours, dayStartOf, hourMs, hourOf } from "../task/statistics/statistics.ts";
import { SingleFlight } from "./single-flight.ts";

export interface StatisticsKeeperOptions {
  store: Pick<Store, "statistics">;
  membership: Pick<Membership, "term">;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
}

const addEveryMs = 300_000;
/** A run whose end is stored more than this many ms late is counted, but its duration is not added to the statistics. */
const settledMs = 60_000;
/** How much of the history one statement reads at first, in ms; halved or doubled so that a statement takes about `statementMs`. */
const firstSliceMs = 300_000;
const [leastSliceMs, mostSliceMs] = [1_000, hourMs];
const statementMs = 1_000;
const mergeEveryMs = 6 * hourMs;
const hoursKept = 14 * dayHours;
const daysKept = 400;

/**
 * Adds the durations of ended runs to the tasks' statistics within some minutes, except those of runs whose end is stored more
 * than `settledMs` late. Statistics are kept by the hour for 14 days and by the day for 400 days. The leader does this. Each
 * statement reads one slice of the history and records how far it got, so that a new leader continues there, and each run is
 * added once.
 */
export class StatisticsKeeper {
  readonly #options: StatisticsKeeperOptions;
  readonly #adding: SingleFlight;
  readonly #merging: SingleFlight;
  #addedAt = Number.NEGATIVE_INFINITY;
  #mergedAt = Number.NEGATIVE_INFINITY;
  #sliceMs = firstSliceMs;

  constructor(options: StatisticsKeeperOptions) {
    this.#options = options;
    this.#adding = new SingleFlight("statistics", options.log, () => this.#add());
    this.#merging = new SingleFlight("merge of statistics", options.log, () => this.#merge());
  }

  onPulse(): void {
    const { membership, clock } = this.#options;
    if (membership.term() === null) return;
    if (clock.monotonic() - this.#addedAt >= addEveryMs) void this.#adding.run();
    if (clock.monotonic() - this.#mergedAt >= mergeEveryMs) void this.#merging.run();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#adding.stop(), this.#merging.stop()]);
  }

  async #add(): Promise<void> {
    const { store, membership, clock, storeClock } = this.#options;
    this.#addedAt = clock.monotonic();
    const untilMs = Math.floor(storeClock.now() - settledMs);
    for (let addedMs = 0; addedMs < untilMs && membership.term() !== null; ) {
      const beganMono = clock.monotonic();
      const before = addedMs;
      const slower = () => {
        this.#sliceMs = Math.max(leastSliceMs, this.#sliceMs / 2);
      };
      addedMs = await store.statistics.addTimes(untilMs, this.#sliceMs).catch((error: unknown) => {
        slower(); // the statement may have run into a timeout of the server
        throw error;
      });
      if (addedMs === before) break; // no progress, for example because the store's clock was set back
      const tookMs = clock.monotonic() - beganMono;
      if (tookMs > 2 * statementMs) slower();
      else if (tookMs < statementMs / 2) this.#sliceMs = Math.min(mostSliceMs, this.#sliceMs * 2);
    }
  }

  async #merge(): Promise<void> {
    const { store, clock, storeClock } = this.#options;
    this.#mergedAt = clock.monotonic() - mergeEveryMs + addEveryMs; // if the merge fails, the next attempt follows after `addEveryMs`
    const day = dayStartOf(hourOf(storeClock.now()));
    await store.statistics.merge(day - hoursKept, day - daysKept * dayHours);
    this.#mergedAt = clock.monotonic();
  }
}
