import { type Clock, EarliestTimer } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Membership } from "../../cluster/membership.ts";
import type { ClaimedRun, ClaimRequest, ClaimStore } from "../../run/claim-store.ts";
import type { DueQueue } from "../running/due-queue.ts";
import type { Pace } from "./pace.ts";

/**
 * Delay in ms of the next turn (one fairness query), after a turn that returned runs or after an event that may have made runs available.
 */
const turnMs = 25;

/** The most runs that one turn returns. The limit is above the number of tasks in a turn, so that no task is left out. */
const runsPerTurn = 500;
const runsOfOneTask = 200;

export interface FairnessOptions {
  claims: Pick<ClaimStore, "turn">;
  clock: Clock;
  log: Log;
  membership: Membership;
  overdue: DueQueue;
  pace: Pace;
  request(limit: number): ClaimRequest;
  take<Answer extends { runs: ClaimedRun[] }>(ask: () => Promise<Answer>): Promise<Answer>;
  /** Called when the store may have carried out a turn whose reply was lost. */
  lost(): void;
}

/**
 * Keeps claiming fair. A turn is one query that claims due runs of tasks of which this worker holds no waiting run, and runs of a higher
 * priority than those that wait here; so neither waits behind another task's backlog. While all due runs fit into this worker, no turn is
 * made. After a turn without runs, the next turn waits until a run ends here or the worker makes a claim. Without this wait, a worker full
 * of long runs would send useless queries.
 */
export class Fairness {
  readonly #options: FairnessOptions;
  readonly #timer: EarliestTimer;
  #taking: Promise<void> | undefined;
  /** True if another turn follows the current one. */
  #again = false;
  #afterTaskId = 0;
  #moreWaits = false;

  constructor(options: FairnessOptions) {
    this.#options = options;
    this.#timer = new EarliestTimer(options.clock, () => this.#turn());
  }

  /** @param moreWaits true if a claim left runs in the store, or if a run found no free slot */
  claimed(moreWaits: boolean): void {
    this.#moreWaits = moreWaits;
    if (moreWaits) this.#next();
  }

  /** Called when a run has ended here and has freed a slot. */
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

  /** Claims runs that are due now and that fairness or priority puts before the runs waiting in this worker. */
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
      // A `lastTaskId` above 0 means that the query stopped before the last task, so the next turn continues after `lastTaskId`.
      if (runs.length > 0 || lastTaskId > 0) this.#again = true;
    } catch (error) {
      lost();
      log.debug({ error: messageOf(error) }, "a turn could not be taken; the next one comes");
    }
  }
}
