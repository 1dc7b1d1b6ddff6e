import { type Clock, EarliestTimer } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore, RoomElsewhere } from "../../run/claim-store.ts";
import { givenBack } from "../bounds.ts";
import type { DueQueue } from "../running/due-queue.ts";
import type { HeldRun } from "../running/held-run.ts";
import type { Pace } from "./pace.ts";

/**
 * Delay from the moment when a due run finds no free slot to the first query. Runs that have waited for half of it by then are handed on.
 */
const askedAfterMs = 50;
/** Pause before the next query when no other worker has a free slot: at first the first value, then longer each time, up to the second. */
const [firstPauseMs, longestPauseMs] = [150, 1_200];
/** The most tasks that one query names. */
const tasksMost = 200;

export interface HandOnHost {
  readonly claims: Pick<ClaimStore, "roomElsewhere">;
  readonly clock: Clock;
  readonly log: Log;
  readonly overdue: DueQueue;
  readonly pace: Pace;
  readonly concurrency: number;
  now(): number;
  sessionId(): number;
  /** True if no slot is free, and the waiting runs were certainly claimed under the current session. */
  full(): boolean;
  giveBack(run: HeldRun): void;
}

/**
 * Guarantees that a due run without a free slot in this worker starts in another worker that has one, however early it was claimed. A
 * worker claims ahead the runs it expects to start, and cannot know how long its handlers take.
 *
 * A run is given back only where the store shows a free slot for it in another worker, because without one the run would come straight
 * back. The store may be wrong: the other worker may be full by then, may be dead and not yet detected as dead, or may have no handler for
 * the task. Then the run waits in the store until any slot is free, and a run that comes back to this worker is not handed on again for a
 * while. If the store does not answer, runs that have waited for seconds are given back without a query (`givenBack`).
 */
export class HandOn {
  readonly #host: HandOnHost;
  readonly #timer: EarliestTimer;
  #pauseMs = askedAfterMs;
  #asking = false;
  /** When each run was handed on, by this process's monotonic clock. */
  readonly #handed = new Map<number, number>();

  constructor(host: HandOnHost) {
    this.#host = host;
    this.#timer = new EarliestTimer(host.clock, () => void this.#ask());
  }

  /** Called when a run may be waiting for a slot. */
  look(): void {
    if (this.#timer.armed || this.#asking || this.#host.overdue.size === 0) return;
    this.#timer.within(this.#pauseMs);
  }

  /** Gives back runs that have waited for seconds, whether or not another worker has a free slot. */
  giveUp(): void {
    const { overdue, pace, concurrency, now, giveBack } = this.#host;
    for (const { waitedMs, spared } of givenBack) {
      const tooMany = overdue.takeOverdue(now() - waitedMs, spared * concurrency);
      if (tooMany.length > 0) pace.gaveBack(waitedMs, spared === 0);
      for (const run of tooMany) giveBack(run);
    }
  }

  close(): void {
    this.#timer.close();
  }

  async #ask(): Promise<void> {
    const { claims, log, overdue, sessionId, full } = this.#host;
    if (overdue.size === 0) {
      this.#pauseMs = askedAfterMs;
      this.#handed.clear();
      return;
    }
    this.#asking = true;
    try {
      const room = full() ? await claims.roomElsewhere(sessionId(), [...overdue.taskIds].slice(0, tasksMost)) : [];
      this.#pauseMs =
        room.length > 0 ? askedAfterMs : Math.min(Math.max(firstPauseMs, 2 * this.#pauseMs), longestPauseMs);
      if (full()) this.#handOn(room);
    } catch (error) {
      this.#pauseMs = longestPauseMs;
      log.debug({ error: messageOf(error) }, "which other worker has a free place could not be read");
    } finally {
      this.#asking = false;
      this.look();
    }
  }

  #handOn(room: readonly RoomElsewhere[]): void {
    if (room.length === 0) return;
    const { clock, overdue, pace, now, giveBack } = this.#host;
    const nowMono = clock.monotonic();
    const free = room.map(({ places, taskIds }) => ({ places, taskIds: new Set(taskIds) }));
    const handed = overdue.takeOverdue(now() - askedAfterMs / 2, 0, ({ id, state, claim }) => {
      const last = this.#handed.get(id);
      if (state !== "waiting" || (last !== undefined && nowMono - last < longestPauseMs)) return false;
      const place = free.find(({ places, taskIds }) => places > 0 && taskIds.has(claim.taskId));
      if (place) place.places--;
      return place !== undefined;
    });
    if (handed.length === 0) return;
    // This worker claims no more until a run ends here, because it would claim these same runs again at once.
    pace.gaveBack(0, true);
    for (const run of handed) {
      this.#handed.set(run.id, nowMono);
      giveBack(run);
    }
  }
}
