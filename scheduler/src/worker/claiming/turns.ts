import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Membership } from "../../cluster/membership.ts";
import type { ClaimedRun, ClaimRequest, ClaimStore } from "../../run/claim-store.ts";
import type { DueQueue } from "../running/due-queue.ts";
import type { Pace } from "./pace.ts";

/** While there is more than this worker can hold, other tasks get their turn so often. */
const turnMs = 25;

/** More than there are tasks in a turn, so that none is left out. */
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
  /** The turn may have been taken and its reply lost. */
  lost(): void;
}

/**
 * Makes true: a task of which this worker holds nothing is not kept waiting by another's backlog. Nothing happens, and
 * nothing is asked, while all that is due fits into this worker.
 */
export class Turns {
  readonly #options: TurnsOptions;
  #cancel: (() => void) | undefined;
  #taking: Promise<void> | undefined;
  #afterTaskId = 0;
  #moreWaits = false;
  #stopped = false;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** @param moreWaits a claim left more in the store, or there was no room for one */
  claimed(moreWaits: boolean): void {
    this.#moreWaits = moreWaits;
    if (!moreWaits || this.#cancel || this.#taking || this.#stopped) return;
    this.#cancel = this.#options.clock.after(turnMs, () => {
      this.#cancel = undefined;
      if (this.#stopped || !this.#behind()) return;
      this.#taking = this.#take().finally(() => {
        this.#taking = undefined;
        if (this.#behind()) this.claimed(true);
      });
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#taking;
  }

  #behind(): boolean {
    return this.#moreWaits && this.#options.overdue.size > 0;
  }

  /** Of what is due now, and of tasks that have nothing waiting here. */
  async #take(): Promise<void> {
    const { claims, membership, overdue, pace, log, request, take, lost } = this.#options;
    if (!membership.trusted()) return;
    const asked = request(runsPerTurn);
    try {
      const turn = {
        ...asked,
        untilMs: asked.nowMs,
        exceptTaskIds: [...asked.exceptTaskIds, ...overdue.taskIds],
        leastPriority: overdue.priority,
        each: Math.min(pace.startable(4 * turnMs), runsOfOneTask),
        afterTaskId: this.#afterTaskId,
      };
      const { lastTaskId } = await take(() => claims.turn(turn));
      this.#afterTaskId = lastTaskId;
    } catch (error) {
      lost();
      log.debug({ error: messageOf(error) }, "a turn could not be taken; the next one comes");
    }
  }
}
