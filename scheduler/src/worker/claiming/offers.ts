import { isCarillonError } from "../../base/errors.ts";
import type { ClaimedRun, ClaimRequest, LocalClaims } from "../../run/claim-store.ts";

/** A refusal of the request itself, before any run was made; store failures are no refusals. */
const isRefusal = (error: unknown) => isCarillonError(error) && !error.code.startsWith("STORE_");

export interface OffersHost {
  /** True: no earlier run may be waiting here or in the store. */
  inStep(): boolean;
  room(): number;
  request(limit: number): ClaimRequest;
  take(ask: () => Promise<{ runs: ClaimedRun[] }>): Promise<unknown>;
  nudge(dueMs: number): void;
  lost(): void;
}

/**
 * Offers this worker's free slots to runs enqueued in its own process: the statement that makes a due run also makes it this session's
 * claim. So the run is written once, and starts when it is safe. A stop waits for such statements.
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
