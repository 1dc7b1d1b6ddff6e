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
  /** Called once with the tasks of changes that no earlier read has returned. */
  onChanged: (taskIds: number[]) => void;
}

/** A change becomes visible within this many ms of its timestamp, because its transaction commits well within that time. */
const overlapMs = 300_000;
/** The longest interval between two reads in ms, because a heartbeat does not report every change (see `changesWatched`). */
const lookEveryMs = 240_000;
/**
 * Changes within this many ms share one read. If reads take long, the pause before the next one is nine times as long as a read, at most
 * `gatherMostMs`.
 */
const gatherMs = 50;
const gatherMostMs = 2_000;
const restsPerLook = 9;

/**
 * Guarantees that a change of a task is cached in this process within one heartbeat interval of its commit, even if signals are lost. A
 * signal only triggers a read. The answer to a heartbeat contains a digest of the latest changes, so a lost signal is noticed with the next
 * heartbeat, and an idle node sends no further query. Each read starts five minutes before the last successful one, however long ago that
 * was. A version only replaces an older version, so signals may arrive twice, late, or in any order.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #flight: SingleFlight;
  readonly #stopping = new AbortController();
  #fromMs: number;
  #lookedAt: number;
  /** The digest in the last heartbeat's answer, and the digest that had been received when the last read began. */
  #told: string | undefined;
  #followed: string | undefined;
  /** The changes that the last read returned; if the next read returns them again, they are not reported again. */
  #seen = new Map<number, TaskChange>();
  #lookTookMs = 0;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    const { membership, definitions, clock, storeClock } = options;
    // It is unknown when the definitions that are cached already were read, so the first read covers all changes.
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
