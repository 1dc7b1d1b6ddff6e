import { type Clock, pause } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { Signal } from "../cluster/signal-store.ts";
import type { Definitions } from "../store/definitions.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { TaskChange } from "../task/task-record.ts";
import type { TaskStore } from "../task/task-store.ts";
import { SingleFlight } from "./single-flight.ts";

export interface ReconcilerOptions {
  store: { tasks: Pick<TaskStore, "changedSince"> };
  membership: Pick<Membership, "onPulse">;
  definitions: Definitions;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  /** Called once, with the tasks, for changes that no look had seen before. */
  onChanged: (taskIds: number[]) => void;
}

/** A change is committed, and so visible, well within this time of its timestamp. */
const overlapMs = 300_000;
/** Look this often even without a reason: for changes that no pulse reports (see `changesWatched` in the store's sessions). */
const lookEveryMs = 240_000;
/** Many changes at once are one look; when looks take long, the next waits longer, so that looks take a tenth of the time. */
const gatherMs = 50;
const gatherMostMs = 2_000;
const restsPerLook = 9;

/**
 * Guarantees that a change of a task is in this process's memory within one pulse of its commit, whether signals arrive or not. A signal
 * only means "look now"; a pulse carries a text that stands for the latest changes, so a lost signal is noticed with the next pulse, and an
 * idle node sends no further query. Every look goes back five minutes before the last one that succeeded, however long ago that was; a
 * version only ever replaces an older one, so signals may come twice, late and in any order.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #flight: SingleFlight;
  readonly #stopping = new AbortController();
  #fromMs: number;
  #lookedAt: number;
  /** The text of the last pulse, and the one that the last look was made after. */
  #told: string | undefined;
  #followed: string | undefined;
  /** The result of the last look: changes of the next that are already in it are not new. */
  #seen = new Map<number, TaskChange>();
  #lookTookMs = 0;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    const { membership, definitions, clock, storeClock } = options;
    // Definitions that are already loaded were read at an unknown time.
    this.#fromMs = definitions.size > 0 ? 0 : storeClock.now() - overlapMs;
    this.#lookedAt = clock.monotonic();
    this.#flight = new SingleFlight("reconciler", options.log, () => this.#look());
    membership.onPulse((pulse) => this.#onPulse(pulse));
  }

  onSignal({ kind }: Signal): void {
    if (kind === "tasks" || kind === "resync") void this.#flight.run();
  }

  stop(): Promise<void> {
    this.#stopping.abort();
    return this.#flight.stop();
  }

  #onPulse({ changes }: Pulse): void {
    this.#told = changes;
    const silentMs = this.#options.clock.monotonic() - this.#lookedAt;
    if (changes !== this.#followed || silentMs >= lookEveryMs) void this.#flight.run();
  }

  async #look(): Promise<void> {
    const { store, definitions, clock, storeClock, onChanged } = this.#options;
    const restMs = Math.min(Math.max(gatherMs, restsPerLook * this.#lookTookMs), gatherMostMs);
    await pause(clock, restMs, this.#stopping.signal);
    const beganMono = clock.monotonic();
    const told = this.#told;
    const nowMs = storeClock.now();
    const changed = await store.tasks.changedSince(this.#fromMs);
    await definitions.follow(changed);
    this.#fromMs = nowMs - overlapMs;
    this.#lookedAt = clock.monotonic();
    this.#followed = told;
    const before = this.#seen;
    this.#seen = new Map(changed.map((change) => [change.taskId, change]));
    this.#lookTookMs = clock.monotonic() - beganMono;
    const isNews = ({ taskId, version, changedMs }: TaskChange) => {
      const known = before.get(taskId);
      return known?.version !== version || known.changedMs !== changedMs;
    };
    const news = changed.filter(isNews);
    if (news.length > 0) onChanged(news.map(({ taskId }) => taskId));
  }
}
