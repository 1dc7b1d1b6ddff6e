import type { Reach } from "../access/access.ts";
import type { Event } from "../api/contract.ts";
import { type Clock, pause } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Signal } from "../cluster/signal-store.ts";
import { outcomes } from "../run/run.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { BrowseStore } from "../store/browse-store.ts";
import type { StreamHandler } from "./call.ts";
import { summary } from "./calls/run-calls.ts";

const lookMs = 500;
/** A run's end may become visible in the store up to this many ms after its end time. */
const endBackMs = 5_000;
const endsPerLook = 500;
/** If more events than this wait for a slow client, the oldest events about ended runs are dropped and counted. */
const waitingMax = 2_000;

type LiveEvent = Event<"followEvents">;

interface Follower {
  task: string | undefined;
  reach: Reach;
  waiting: LiveEvent[];
  /** The number of dropped events about ended runs that have not been reported yet. */
  left: number;
  wake: () => void;
}

/**
 * Sends events to all followers within about a second. One query of the store serves all followers; without followers there are no queries.
 */
export class LiveEvents {
  readonly #browse: BrowseStore;
  readonly #clock: Clock;
  readonly #nowMs: () => number;
  readonly #log: Log;
  readonly #followers = new Set<Follower>();
  readonly #over = new AbortController();
  #looking: Promise<void> | undefined;

  constructor(browse: BrowseStore, clock: Clock, nowMs: () => number, log: Log) {
    this.#browse = browse;
    this.#clock = clock;
    this.#nowMs = nowMs;
    this.#log = log;
  }

  onSignal({ kind }: Signal): void {
    if (kind === "tasks" || kind === "operations" || kind === "leadership" || kind === "resync")
      this.#tell({ type: kind });
  }

  follow: StreamHandler<"followEvents"> = async ({ task }, { reach, signal }) => {
    if (task !== undefined) reach.check(task);
    return this.#follow(task, reach, signal);
  };

  async close(): Promise<void> {
    this.#over.abort();
    await this.#looking;
  }

  async *#follow(task: string | undefined, reach: Reach, signal: AbortSignal) {
    const follower: Follower = { task, reach, waiting: [{ type: "resync" }], left: 0, wake: () => undefined };
    this.#followers.add(follower);
    this.#looking ??= this.#look();
    const onAbort = () => follower.wake();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      while (!signal.aborted) {
        for (const data of follower.waiting.splice(0)) yield { data };
        if (follower.left > 0) {
          const ended = follower.left;
          follower.left = 0;
          yield { data: { type: "more" as const, ended } };
        }
        if (follower.waiting.length > 0 || signal.aborted) continue;
        await new Promise<void>((resolve) => {
          follower.wake = resolve;
        });
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#followers.delete(follower);
    }
  }

  #tell(event: LiveEvent): void {
    for (const follower of this.#followers) {
      const { task, reach, waiting } = follower;
      if (event.type === "ended" && ((task !== undefined && event.run.task !== task) || !reach.has(event.run.task)))
        continue;
      // Events other than `ended` only cause the client to reload data, so one waiting event of each type is enough.
      if (event.type !== "ended" && waiting.some(({ type }) => type === event.type)) continue;
      if (waiting.length >= waitingMax) {
        // The other events are not dropped: at most one of each type waits, and without it the client would show old data.
        waiting.splice(
          waiting.findIndex(({ type }) => type === "ended"),
          1,
        );
        follower.left++;
      }
      waiting.push(event);
      follower.wake();
    }
  }

  async #look(): Promise<void> {
    const told = new Map<number, number>();
    let sinceMs = this.#nowMs();
    while (this.#followers.size > 0 && !this.#over.signal.aborted) {
      const from = this.#nowMs();
      try {
        const runs = await this.#ended(sinceMs - endBackMs);
        for (const run of runs.reverse()) {
          const endedMs = run.endedMs as number;
          if (told.has(run.runId) || endedMs < sinceMs - endBackMs) continue;
          told.set(run.runId, endedMs);
          this.#tell({ type: "ended", run: summary(run) });
        }
        sinceMs = Math.max(sinceMs, Math.min(from, Math.max(sinceMs, ...runs.map(({ endedMs }) => endedMs as number))));
        for (const [runId, endedMs] of told) if (endedMs < sinceMs - 2 * endBackMs) told.delete(runId);
      } catch (error) {
        // While the store is unreachable nothing can be read; followers get the event `resync` after the outage.
        this.#log.debug({ error: messageOf(error) }, "events could not be read");
      }
      await pause(this.#clock, lookMs, this.#over.signal);
    }
    this.#looking = undefined;
  }

  async #ended(sinceMs: number): Promise<RunRecord[]> {
    const { runs } = await this.#browse.runs({
      taskId: null,
      states: [...outcomes],
      readyBeforeMs: null,
      untilMs: null,
      after: null,
      sinceMs: Math.floor(sinceMs),
      limit: endsPerLook,
    });
    return runs;
  }
}
