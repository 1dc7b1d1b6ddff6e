import { type Clock, EarliestTimer } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore, RoomElsewhere } from "../../run/claim-store.ts";
import { givenBack } from "../bounds.ts";
import type { DueQueue } from "../running/due-queue.ts";
import type { HeldRun } from "../running/held-run.ts";
import type { Pace } from "./pace.ts";

/** So long after a due run has found no place, the first question is asked; what has waited for half of that is handed on then. */
const askedAfterMs = 50;
/** Where no other worker has a place, the next question comes after the first of these, and then after ever longer ones. */
const [firstPauseMs, longestPauseMs] = [150, 1_200];
/** Tasks that one question names. */
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
  /** No place is free, and what waits for one is surely this session's. */
  full(): boolean;
  giveBack(run: HeldRun): void;
}

/**
 * Makes true: a run that is due and finds no place here begins where another worker has one, however early it was claimed. A worker
 * claims ahead what it expects to start, and cannot know how long its handlers take.
 *
 * A run goes back only where the store's book shows a free place for it elsewhere: without one it would come straight back. The book may
 * err: that worker is full by then, is dead and not yet found so, or has no handler for the task. Then the run waits in the store
 * until a place is free anywhere, and one that comes back here is not handed on again for a while. If the store does not answer, what
 * has waited for seconds is given back without this (`givenBack`).
 */
export class HandOn {
  readonly #host: HandOnHost;
  readonly #timer: EarliestTimer;
  #pauseMs = askedAfterMs;
  #asking = false;
  /** When runs were handed on, by this process's monotonic clock. */
  readonly #handed = new Map<number, number>();

  constructor(host: HandOnHost) {
    this.#host = host;
    this.#timer = new EarliestTimer(host.clock, () => void this.#ask());
  }

  /** Something may wait for a place. */
  look(): void {
    if (this.#timer.armed || this.#asking || this.#host.overdue.size === 0) return;
    this.#timer.within(this.#pauseMs);
  }

  /** Gives back what has waited for seconds, whether or not another worker has a place. */
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
    // The others' until a run ends here: this worker would claim them again at once.
    pace.gaveBack(0, true);
    for (const run of handed) {
      this.#handed.set(run.id, nowMono);
      giveBack(run);
    }
  }
}
