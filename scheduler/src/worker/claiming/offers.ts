import { isCarillonError } from "../../base/errors.ts";
import type { ClaimedRun, ClaimRequest, LocalClaims } from "../../run/claim-store.ts";

/** True if the store refused the request itself before any run was made. An error that says the store failed is not a refusal. */
const isRefusal = (error: unknown) => isCarillonError(error) && !error.code.startsWith("STORE_");

export interface OffersHost {
  /** True if no earlier run can be waiting in this worker or in the store. */
  inStep(): boolean;
  room(): number;
  request(limit: number): ClaimRequest;
  take(ask: () => Promise<{ runs: ClaimedRun[] }>): Promise<unknown>;
  nudge(dueMs: number): void;
  lost(): void;
}

/**
 * Offers this worker's free slots to runs enqueued in its own process: the statement that makes a due run also makes it this session's
 * claim. So the run needs only one write, and it starts as soon as that write is committed. A stop waits for these statements.
 */
export class Offers {
  readonly #host: OffersHost;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(host: OffersHost) {
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
      // Some runs may have been made before the failure, unless it is a refusal.
      if (room > 0 && (made || !isRefusal(error))) host.lost();
      // The runs could not be taken over; the next read of this session's claims returns them.
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
