import { isCarillonError } from "../../base/errors.ts";
import type { ClaimedRun, ClaimRequest, LocalClaims } from "../../run/claim-store.ts";

/** True if the store refused the request before it created any run. An error that reports a failure of the store is not a refusal. */
const isRefusal = (error: unknown) => isCarillonError(error) && !error.code.startsWith("STORE_");

export interface LocalClaimerHost {
  /** True if the worker may claim runs now, and no other due run can be waiting in this worker or in the store. */
  inStep(): boolean;
  room(): number;
  request(limit: number): ClaimRequest;
  take(ask: () => Promise<{ runs: ClaimedRun[] }>): Promise<unknown>;
  nudge(dueMs: number): void;
  lost(): void;
}

/**
 * Offers this worker's free slots to runs that its own process enqueues: the statement that inserts a due run also claims the run for
 * this worker's session. So the run needs only one write and starts as soon as that write is committed. When the worker stops, `settled`
 * waits until these statements have ended.
 */
export class LocalClaimer {
  readonly #host: LocalClaimerHost;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(host: LocalClaimerHost) {
    this.#host = host;
  }

  async during<Answer>(send: (local: LocalClaims) => Promise<Answer>): Promise<Answer> {
    const host = this.#host;
    const room = host.inStep() ? Math.max(0, host.room()) : 0;
    const runs: ClaimedRun[] = [];
    let soonestMs = Number.POSITIVE_INFINITY;
    const local: LocalClaims = {
      ...host.request(room),
      room,
      made(claimed, readyMs) {
        runs.push(...claimed);
        soonestMs = Math.min(soonestMs, readyMs);
      },
      lost: () => host.lost(),
    };
    let answer: Answer | undefined;
    const taken = host.take(async () => {
      answer = await send(local);
      return { runs };
    });
    this.#underWay.add(taken);
    try {
      await taken;
      return answer as Answer;
    } catch (error) {
      const made = answer !== undefined;
      // A refused request created no run. After any other failure, runs may have been created and claimed, so the worker reads its claims
      // again.
      if (room > 0 && (made || !isRefusal(error))) host.lost();
      // The runs are in the store but this worker could not add them; its next read of this session's claims returns them.
      if (made) return answer as Answer;
      throw error;
    } finally {
      this.#underWay.delete(taken);
      if (soonestMs !== Number.POSITIVE_INFINITY) host.nudge(soonestMs);
    }
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }
}
