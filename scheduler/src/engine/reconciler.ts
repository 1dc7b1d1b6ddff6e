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
  /** Called once with the tasks of changes that no earlier look had seen. */
  onChanged: (taskIds: number[]) => void;
}

/** A change is committed, and so visible, well within this time of its timestamp. */
const overlapMs = 300_000;
/** A look is made this often even without a reason, for changes that no pulse reports (see `changesWatched` in the store's sessions). */
const lookEveryMs = 240_000;
/** Changes within this time share one look. When looks take long, the next one waits longer, so that looks take a tenth of the time. */
const gatherMs = 50;
const gatherMostMs = 2_000;
const restsPerLook = 9;

/**
 * Guarantees that a change of a task is in this process's memory within one pulse of its commit, whether or not signals arrive. A signal
 * only means "look now". A pulse carries a digest of the latest changes, so a lost signal is noticed with the next pulse, and an idle node
 * sends no further query. Every look goes back five minutes before the last successful look, however long ago that was. A version only ever
 * replaces an older version, so signals may arrive twice, late and in any order.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #flight: SingleFlight;
  readonly #stopping = new AbortController();
  #fromMs: number;
  #lookedAt: number;
  /** The digest in the last pulse, and the digest after which the last look was made. */
  #told: string | undefined;
  #followed: string | undefined;
  /** The changes that the last look returned: if the next look returns them again, they are not new. */
  #seen = new Map<number, TaskChange>();
  #lookTookMs = 0;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    const { membership, definitions, clock, storeClock } = options;
    // It is unknown when the definitions that are already loaded were read, so the first look covers all changes.
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
