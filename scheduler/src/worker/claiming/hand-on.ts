import { type Clock, EarliestTimer } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore, RoomElsewhere } from "../../run/claim-store.ts";
import { givenBack } from "../bounds.ts";
import type { DueQueue } from "../running/due-queue.ts";
import type { HeldRun } from "../running/held-run.ts";
import type { Pace } from "./pace.ts";

/**
 * Delay in ms from the moment when a due run finds no free slot to the first query for other workers with a free slot. A run is handed on
 * if it has waited for at least half of this delay.
 */
const askedAfterMs = 50;
/** Pause in ms between queries while no other worker has a free slot: it starts at the first value and doubles up to the second. */
const [firstPauseMs, longestPauseMs] = [150, 1_200];
/** The most tasks that one query names. */
const tasksMost = 200;

export interface HandOnHost {
  readonly claims: Pick<ClaimStore, "roomElsewhere">;
  readonly clock: Clock;
  readonly log: Log;
  readonly overdue: DueQueue;
  readonly pace: Pace;
  now(): number;
  sessionId(): number;
  /** True if this worker has no free slot and all waiting runs were claimed under the current session. */
  full(): boolean;
  giveBack(run: HeldRun): void;
}

/**
 * Hands a due run that finds no free slot in this worker to another worker that has one. A worker claims ahead the runs that it expects to
 * start, but cannot know how long its handlers take.
 *
 * A run is given back to the store only if the store reports a free slot for the run in another worker; otherwise this worker would claim
 * the run again at once. The report may be wrong: the other worker may have filled up, may have died undetected, or may have no handler for
 * the task. Then the run waits in the store until any worker has a free slot. A run that this worker claims again is not handed on again
 * for `longestPauseMs`. If the store does not answer, runs that have waited for seconds are given back without a query (`givenBack`).
 */
export class HandOn {
  readonly #host: HandOnHost;
  readonly #timer: EarliestTimer;
  #pauseMs = askedAfterMs;
  #asking = false;
  /** By run id: when this worker last handed the run on, by this process's monotonic clock. */
  readonly #handed = new Map<number, number>();

  constructor(host: HandOnHost) {
    this.#host = host;
    this.#timer = new EarliestTimer(host.clock, () => void this.#ask());
  }

  /** Called when a due run may have found no free slot. */
  look(): void {
    if (this.#timer.armed || this.#asking || this.#host.overdue.size === 0) return;
    this.#timer.within(this.#pauseMs);
  }

  /** Gives back runs that have waited for seconds, whether or not another worker has a free slot. */
  giveUp(): void {
    const { overdue, pace, now, giveBack } = this.#host;
    for (const { waitedMs, sparedMs } of givenBack) {
      const tooMany = overdue.takeOverdue(now() - waitedMs, sparedMs === 0 ? 0 : pace.startable(sparedMs));
      if (tooMany.length > 0) pace.gaveBack(waitedMs, sparedMs === 0);
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
    // Stops claims until a run ends here, because this worker would claim the same runs again at once.
    pace.gaveBack(0, true);
    for (const run of handed) {
      this.#handed.set(run.id, nowMono);
      giveBack(run);
    }
  }
}
