import { type Clock, EarliestTimer } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Membership } from "../../cluster/membership.ts";
import type { ClaimedRun, ClaimRequest, ClaimStore } from "../../run/claim-store.ts";
import type { DueQueue } from "../running/due-queue.ts";
import type { Pace } from "./pace.ts";

/** Delay of the next turn, after a turn that returned runs or after an event that may have made runs available. */
const turnMs = 25;

/** More than the number of tasks in a turn, so that no task is left out. */
const runsPerTurn = 500;
const runsOfOneTask = 200;

export interface TurnsOptions {
  claims: Pick<ClaimStore, "turn">;
  clock: Clock;
  log: Log;
  membership: Membership;
  overdue: DueQueue;
  pace: Pace;
  request(limit: number): ClaimRequest;
  take<Answer extends { runs: ClaimedRun[] }>(ask: () => Promise<Answer>): Promise<Answer>;
  /** Called when the turn may have been taken and its reply lost. */
  lost(): void;
}

/**
 * Guarantees that a task of which this worker holds no run does not wait behind another task's backlog, and that a run does not wait behind
 * runs of lower priority. While all due runs fit into this worker, no turn is taken and no query is sent. After a turn without runs, the
 * next turn waits until a run ends here or the worker wants to claim, which it does when a run becomes ready and in any case every 250 ms.
 * Without this wait, a worker full of long runs, which has no free slot, would send forty useless queries a second.
 */
export class Turns {
  readonly #options: TurnsOptions;
  readonly #timer: EarliestTimer;
  #taking: Promise<void> | undefined;
  /** Another turn is to follow the one under way. */
  #again = false;
  #afterTaskId = 0;
  #moreWaits = false;

  constructor(options: TurnsOptions) {
    this.#options = options;
    this.#timer = new EarliestTimer(options.clock, () => this.#turn());
  }

  /** @param moreWaits true if a claim left runs in the store, or if a run found no free slot */
  claimed(moreWaits: boolean): void {
    this.#moreWaits = moreWaits;
    if (moreWaits) this.#next();
  }

  /** A run has ended here, so that a slot is free. */
  ended(): void {
    if (this.#behind()) this.#next();
  }

  async stop(): Promise<void> {
    this.#timer.close();
    await this.#taking;
  }

  #next(): void {
    if (this.#taking) this.#again = true;
    else if (!this.#timer.armed) this.#timer.within(turnMs);
  }

  #turn(): void {
    if (!this.#behind()) return;
    this.#again = false;
    this.#taking = this.#take().finally(() => {
      this.#taking = undefined;
      if (this.#again && this.#behind()) this.#next();
    });
  }

  #behind(): boolean {
    return this.#moreWaits && this.#options.overdue.size > 0;
  }

  /** Claims runs that are due now and that go before the runs waiting in this worker. */
  async #take(): Promise<void> {
    const { claims, membership, overdue, pace, log, request, take, lost } = this.#options;
    if (!membership.trusted()) return;
    const asked = request(runsPerTurn);
    try {
      const turn = {
        ...asked,
        untilMs: asked.nowMs,
        leastPriority: overdue.priority,
        waitingTaskIds: overdue.firstTaskIds,
        each: Math.min(pace.startable(4 * turnMs), runsOfOneTask),
        afterTaskId: this.#afterTaskId,
      };
      const { runs, lastTaskId } = await take(() => claims.turn(turn));
      this.#afterTaskId = lastTaskId;
      // A `lastTaskId` of 0 means that the turn has looked at every task.
      if (runs.length > 0 || lastTaskId > 0) this.#again = true;
    } catch (error) {
      lost();
      log.debug({ error: messageOf(error) }, "a turn could not be taken; the next one comes");
    }
  }
}
