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
  definitions: Pick<Definitions, "size" | "follow">;
  clock: Clock;
  storeClock: Pick<StoreClock, "now">;
  log: Log;
  /** Called once with the tasks of changes that no earlier read has returned. */
  onChanged: (taskIds: number[]) => void;
}

/** A change is assumed to become visible within this many ms of its timestamp: its transaction usually commits well within that time. */
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
/** Cluster time that deviates from this machine's monotonic clock by more than this many ms has stepped; less is drift. */
const stepMs = 1_000;

/**
 * Guarantees that a change of a task is cached in this process within `lookEveryMs` of its commit, and usually within one
 * heartbeat interval, even if signals are lost. A signal only triggers a read. The answer to a heartbeat contains a digest of the
 * latest changes, so a lost signal is usually noticed with the next heartbeat, and an idle node sends no further query. Each read
 * starts five minutes before the last successful one, however long ago that was. If cluster time stepped since then, the read
 * starts from the earlier of the times before and after the step, because the process that makes a change stamps it with either.
 * A version only replaces an older version, so signals may arrive twice, late, or in any order.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #flight: SingleFlight;
  readonly #stopping = new AbortController();
  /** This machine's monotonic clock when the last successful read began; undefined: the next read covers all changes. */
  #lookBegan: number | undefined;
  /** When the last successful read ended, by the monotonic clock. */
  #lookedAt: number;
  /** Cluster time less the monotonic clock, in ms, after each step. An offset is dropped once all changes stamped by it have been read. */
  #offsets: { offset: number; sinceMono: number }[] = [];
  /** The digest in the last heartbeat's answer, and the digest that had been received when the last read began. */
  #told: string | undefined;
  #followed: string | undefined;
  /** The changes that the last read returned; if the next read returns them again, they are not reported again. */
  #seen = new Map<number, TaskChange>();
  #lookTookMs = 0;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    const { membership, definitions, clock } = options;
    // It is unknown when the definitions that are cached already were read, so the first read covers all changes.
    this.#lookBegan = definitions.size > 0 ? undefined : clock.monotonic();
    this.#lookedAt = clock.monotonic();
    this.#noteSteps();
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
    this.#noteSteps();
    const silentMs = this.#options.clock.monotonic() - this.#lookedAt;
    if (changes !== this.#followed || silentMs >= lookEveryMs) void this.#flight.run();
  }

  /** Remembers the present offset of cluster time if cluster time has stepped. */
  #noteSteps(): void {
    const { clock, storeClock } = this.#options;
    const mono = clock.monotonic();
    const offset = storeClock.now() - mono;
    const last = this.#offsets.at(-1);
    if (!last || Math.abs(last.offset - offset) > stepMs) this.#offsets.push({ offset, sinceMono: mono });
  }

  async #look(): Promise<void> {
    const { store, definitions, clock, onChanged } = this.#options;
    const restMs = Math.min(Math.max(gatherMs, restsPerLook * this.#lookTookMs), gatherMostMs);
    await pause(clock, restMs, this.#stopping.signal);
    const beganMono = clock.monotonic();
    const told = this.#told;
    this.#noteSteps();
    const lowest = Math.min(...this.#offsets.map(({ offset }) => offset));
    const fromMs = this.#lookBegan === undefined ? 0 : this.#lookBegan + lowest - overlapMs;
    const changed = await store.tasks.changedSince(fromMs);
    await definitions.follow(changed);
    this.#lookBegan = beganMono;
    // Changes whose timestamps use an offset that ended before this were committed before this read, so the read returned them.
    this.#offsets = this.#offsets.filter(
      (_, i) => (this.#offsets[i + 1]?.sinceMono ?? beganMono) >= beganMono - overlapMs,
    );
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
