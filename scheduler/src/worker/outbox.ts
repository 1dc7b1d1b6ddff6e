import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { ClaimStore, Settlement } from "../store.ts";

const settlementsPerStatement = 2_000;

/**
 * Verdicts on their way to the store: one statement at a time, and all that ended meanwhile goes with the next one, so
 * batches grow with the load and a single run waits for nobody. The store repeats until it is reached.
 */
export class Outbox {
  readonly #claims: Pick<ClaimStore, "settle">;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #sessionId: () => number;
  readonly #acknowledged: (settlements: Settlement[], refused: Set<number>) => void;
  #waiting: Settlement[] = [];
  #flight: Promise<void> | undefined;

  constructor(options: {
    claims: Pick<ClaimStore, "settle">;
    log: Log;
    now: () => number;
    sessionId: () => number;
    acknowledged: (settlements: Settlement[], refused: Set<number>) => void;
  }) {
    this.#claims = options.claims;
    this.#log = options.log;
    this.#now = options.now;
    this.#sessionId = options.sessionId;
    this.#acknowledged = options.acknowledged;
  }

  add(settlement: Settlement): void {
    this.#waiting.push(settlement);
    this.#flight ??= this.#send();
  }

  /** Resolves when everything added so far is settled. */
  async empty(): Promise<void> {
    while (this.#flight) await this.#flight;
  }

  async #send(): Promise<void> {
    // Runs that end in one turn of the event loop travel together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      await this.#settle(this.#waiting.splice(0, settlementsPerStatement));
    }
    this.#flight = undefined;
  }

  async #settle(batch: Settlement[]): Promise<void> {
    try {
      this.#acknowledged(batch, await this.#claims.settle(this.#sessionId(), batch, this.#now()));
    } catch (error) {
      // The store is not away, so something in the batch is at fault: the others must not suffer for it.
      const middle = batch.length >> 1;
      if (middle > 0) {
        await this.#settle(batch.slice(0, middle));
        await this.#settle(batch.slice(middle));
        return;
      }
      // It stays on the store's book, and ends there with this process's session.
      this.#log.error(
        { error: messageOf(error), runs: batch.map(({ runId }) => runId) },
        "a verdict could not be written",
      );
      this.#acknowledged(batch, new Set(batch.map(({ fence }) => fence)));
    }
  }
}
