import { isCarillonError } from "../../base/errors.ts";
import type { ClaimedRun, ClaimRequest, LocalClaims } from "../../run/claim-store.ts";

/** By what was asked, before anything was made of it; all that comes from the store's own trouble is none. */
const isRefusal = (error: unknown) => isCarillonError(error) && !error.code.startsWith("STORE_");

export interface OffersHost {
  /** Nothing that others made may have been waiting here for longer. */
  inStep(): boolean;
  room(): number;
  request(limit: number): ClaimRequest;
  take(ask: () => Promise<{ runs: ClaimedRun[] }>): Promise<unknown>;
  nudge(dueMs: number): void;
  lost(): void;
}

/**
 * Offers this worker's room to what is enqueued in its process: the statement that makes a run that is due makes it this
 * session's claim, so that it is written once, and started when it is safe. Who stops waits for such statements.
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
      // Some may have been made before it failed, unless it is a refusal.
      if (room > 0 && (made || !isRefusal(error))) host.lost();
      // They could not be taken: the book tells of them.
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
