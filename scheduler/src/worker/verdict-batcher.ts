import type { Clock } from "../base/clock.ts";
import { isCarillonError, isStoreAway, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClaimStore, Settlement } from "../run/claim-store.ts";

const settlementsPerStatement = 2_000;
/** While a statement writes at least this many verdicts, verdicts of other tasks do not wait for it. */
const manyVerdicts = 250;
const [firstPauseMs, longestPauseMs] = [1_000, 60_000];

/**
 * Sends verdicts (the results of attempts) to the store, one statement at a time. All verdicts that arrive while a statement is under way
 * go with the next statement, so batches grow with the load and a single verdict waits for no batch. If the statement under way is large,
 * verdicts of tasks that it does not contain are sent beside it, because the next run of a serial task waits for the verdict on the run
 * before. The store client retries until it reaches the store. If the store refuses a verdict (a role's statement_timeout, revoked rights),
 * this class keeps the verdict and retries it later. A dropped verdict would leave the claim in the store, and the run would start again
 * when the worker reads its claims.
 */
export class VerdictBatcher {
  readonly #claims: Pick<ClaimStore, "settle">;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #sessionId: () => number;
  readonly #acknowledged: (settlements: Settlement[], refused: Set<number>) => void;
  #waiting: Settlement[] = [];
  #flight: Promise<void> | undefined;
  /** The tasks of the statement under way, if it is large; and the sending of other tasks' verdicts beside it. */
  #large: ReadonlySet<number> | undefined;
  #beside: Promise<void> | undefined;
  /** The verdicts that the store refused and has not accepted since, each with the number of refusals. */
  readonly #refused = new Map<Settlement, number>();
  /** For each refused verdict that waits for a retry, the function that cancels the retry's timer. */
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
    if (this.#large?.has(settlement.taskId) === false) this.#beside ??= this.#sendBeside();
  }

  /** Number of verdicts that the store refused and has not accepted since. The worker still holds their runs, but they use no slot. */
  get refused(): number {
    return this.#refused.size;
  }

  /** Called when the worker stops: sends the verdicts that wait for a retry at once, and gives every verdict only one more try. */
  hurry(): void {
    this.#isLast = true;
    for (const [settlement, cancel] of [...this.#later]) {
      cancel();
      this.#later.delete(settlement);
      this.add(settlement);
    }
  }

  /** Resolves when no verdict is being sent or waits to be sent. Verdicts that wait for the timer of a retry are not waited for. */
  async empty(): Promise<void> {
    while (this.#flight || this.#beside) await Promise.all([this.#flight, this.#beside]);
  }

  async #send(): Promise<void> {
    // Waits for a microtask, so that verdicts added by the same synchronous code share a statement.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, settlementsPerStatement);
      if (batch.length >= manyVerdicts) {
        this.#large = new Set(batch.map(({ taskId }) => taskId));
        if (this.#waiting.length > 0) this.#beside ??= this.#sendBeside();
      }
      await this.#settle(batch);
      this.#large = undefined;
    }
    this.#flight = undefined;
  }

  async #sendBeside(): Promise<void> {
    await Promise.resolve();
    for (let others = this.#takeOthers(); others.length > 0; others = this.#takeOthers()) await this.#settle(others);
    this.#beside = undefined;
  }

  /** Takes the waiting verdicts of tasks that the large statement under way does not contain. */
  #takeOthers(): Settlement[] {
    const large = this.#large;
    if (!large) return [];
    const others: Settlement[] = [];
    const left: Settlement[] = [];
    let seen = 0;
    for (; seen < this.#waiting.length && others.length < manyVerdicts; seen++) {
      const settlement = this.#waiting[seen] as Settlement;
      (large.has(settlement.taskId) ? left : others).push(settlement);
    }
    // Hundreds of thousands of verdicts may wait, so only those that were looked at are moved.
    if (left.length === 0) this.#waiting.splice(0, seen);
    else if (others.length > 0) this.#waiting = left.concat(this.#waiting.slice(seen));
    return others;
  }

  async #settle(batch: Settlement[]): Promise<void> {
    try {
      this.#told(batch, await this.#claims.settle(this.#sessionId(), batch, this.#now()));
    } catch (error) {
      // The store client retries while the store is away, so at least one verdict of the batch is at fault. Each half of the batch is
      // sent by itself, so that the other verdicts are written.
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
      // The claim stays in the store until this process's session ends. While the store is away, `stopWork` logs all these runs in one
      // line.
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
