import type { Clock } from "../base/clock.ts";
import { isCarillonError, isStoreAway, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClaimStore, Settlement } from "../run/claim-store.ts";

const settlementsPerStatement = 2_000;
const [firstPauseMs, longestPauseMs] = [1_000, 60_000];

/**
 * Sends verdicts to the store, one statement at a time. All runs that end while a statement is under way go with the next statement, so
 * batches grow with the load and a single run waits for no batch. The store client retries until it reaches the store. If the store refuses
 * a verdict (a role's statement_timeout, revoked rights), the worker keeps the verdict and its run. If the worker dropped the verdict, the
 * store would still have the claim, and the run would start again when the claims are read.
 */
export class Outbox {
  readonly #claims: Pick<ClaimStore, "settle">;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #sessionId: () => number;
  readonly #acknowledged: (settlements: Settlement[], refused: Set<number>) => void;
  #waiting: Settlement[] = [];
  #flight: Promise<void> | undefined;
  /** Refused verdicts, and how many times the store refused each of them. */
  readonly #refused = new Map<Settlement, number>();
  /** The functions that cancel the retry timers, by the refused verdict. */
  readonly #later = new Map<Settlement, () => void>();
  #isLast = false;

  constructor(options: {
    claims: Pick<ClaimStore, "settle">;
    clock: Clock;
    log: Log;
    now: () => number;
    sessionId: () => number;
    acknowledged: (settlements: Settlement[], refused: Set<number>) => void;
  }) {
    this.#claims = options.claims;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#now = options.now;
    this.#sessionId = options.sessionId;
    this.#acknowledged = options.acknowledged;
  }

  add(settlement: Settlement): void {
    this.#waiting.push(settlement);
    this.#flight ??= this.#send();
  }

  /** Number of verdicts that the store has refused so far. Their runs are held, but use no slot. */
  get refused(): number {
    return this.#refused.size;
  }

  /** From now on each verdict has only one more try, because the worker stops; waiting retries are sent at once. */
  hurry(): void {
    this.#isLast = true;
    for (const [settlement, cancel] of [...this.#later]) {
      cancel();
      this.#later.delete(settlement);
      this.add(settlement);
    }
  }

  /** Resolves when everything added so far is settled. */
  async empty(): Promise<void> {
    while (this.#flight) await this.#flight;
  }

  async #send(): Promise<void> {
    // Waits for a microtask, so that runs that end in one turn of the event loop share a statement.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      await this.#settle(this.#waiting.splice(0, settlementsPerStatement));
    }
    this.#flight = undefined;
  }

  async #settle(batch: Settlement[]): Promise<void> {
    try {
      this.#told(batch, await this.#claims.settle(this.#sessionId(), batch, this.#now()));
    } catch (error) {
      // The store is reachable, so a verdict in the batch is at fault. The batch is halved so that the other verdicts are written.
      const middle = batch.length >> 1;
      if (middle > 0) {
        await this.#settle(batch.slice(0, middle));
        await this.#settle(batch.slice(middle));
        return;
      }
      for (const settlement of batch) this.#keep(settlement, error);
    }
  }

  #told(batch: Settlement[], refused: Set<number>): void {
    if (this.#refused.size > 0) for (const settlement of batch) this.#refused.delete(settlement);
    this.#acknowledged(batch, refused);
  }

  #keep(settlement: Settlement, error: unknown): void {
    const about = { error: messageOf(error), run: settlement.runId };
    if (this.#isLast) {
      // The store still has the claim, which ends with this process's session. While the store is away, the stop logs all such runs at
      // once.
      const isAway = isStoreAway(error) || isCarillonError(error, "STOPPED");
      (isAway ? this.#log.debug : this.#log.error).call(this.#log, about, "a verdict could not be written");
      this.#told([settlement], new Set([settlement.fence]));
      return;
    }
    const tries = this.#refused.get(settlement) ?? 0;
    this.#refused.set(settlement, tries + 1);
    const inMs = Math.min(firstPauseMs * 2 ** tries, longestPauseMs);
    this.#log.error({ ...about, inMs }, "a verdict was not written; it is tried again");
    const cancel = this.#clock.after(inMs, () => {
      this.#later.delete(settlement);
      this.add(settlement);
    });
    this.#later.set(settlement, cancel);
  }
}
