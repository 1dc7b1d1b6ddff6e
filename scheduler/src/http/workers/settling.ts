import { isCarillonError, messageOf } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore, Settlement, Verdict } from "../../run/claim-store.ts";
import { firstOfEach } from "../../run/first-of-each.ts";

/** Results of a batch of verdicts, by their claims' fences. */
interface Written {
  refused: Set<number>;
  /** Verdicts that could not be written, with the store's error. */
  failed: Map<number, unknown>;
}

interface Batch {
  items: Settlement[];
  written: Promise<Written>;
  resolve: (written: Written) => void;
}

/**
 * Verdicts of all remote workers on their way to the store: one statement at a time; verdicts that arrive meanwhile go into the next one. A
 * verdict that is repeated while it is under way (because its worker gave up on the answer) is sent once. Another verdict on the same claim
 * waits until the first is written, so that the store can refuse it.
 */
export class Settling {
  readonly #claims: ClaimStore;
  readonly #now: () => number;
  readonly #log: Log;
  readonly #under = new Map<number, { settlement: Settlement; batch: Batch }>();
  #waiting: Batch[] = [];
  #flight: Promise<void> | undefined;

  constructor(claims: ClaimStore, now: () => number, log: Log) {
    this.#claims = claims;
    this.#now = now;
    this.#log = log;
  }

  /**
   * @returns the fences whose verdict was refused, because the claim was over; of several verdicts on one claim the first counts
   * @throws the store's error for a verdict that could not be written, once all others are written
   */
  async add(settlements: Settlement[]): Promise<Set<number>> {
    const { first, later } = firstOfEach(settlements);
    const fresh: Settlement[] = [];
    const others: Settlement[] = [];
    /** The fences of this call in each batch; a batch also carries verdicts of other polls, some of them on the same claims. */
    const asked = new Map<Batch, Set<number>>();
    for (const settlement of first) {
      const under = this.#under.get(settlement.fence);
      if (under === undefined) fresh.push(settlement);
      else if (saysTheSame(under.settlement, settlement))
        asked.set(under.batch, (asked.get(under.batch) ?? new Set()).add(settlement.fence));
      else others.push(settlement);
    }
    const entered = new Set(fresh.map(({ fence }) => fence));
    const waits = [...others, ...later.filter(({ fence }) => !entered.has(fence))];
    const before = waits.map(({ fence }) => this.#under.get(fence)?.batch.written);
    if (fresh.length > 0)
      asked.set(this.#enter([...fresh, ...later.filter(({ fence }) => entered.has(fence))]), entered);
    const answers = await Promise.allSettled([...asked].map(([batch, fences]) => answerOf(batch, fences)));
    if (waits.length > 0) {
      // The results of verdicts that were under way before belong to the polls that sent them, so they are not evaluated here.
      await Promise.all(before);
      answers.push(...(await Promise.allSettled([this.#late(others, waits)])));
    }
    const refused = new Set<number>();
    for (const answer of answers) {
      if (answer.status === "rejected") throw answer.reason;
      for (const fence of answer.value) refused.add(fence);
    }
    return refused;
  }

  /** Sends verdicts that waited for another verdict on their claim. @returns the fences of `others` whose verdict was refused */
  async #late(others: Settlement[], waits: Settlement[]): Promise<Set<number>> {
    const refused = await this.add(waits);
    return amongThese(refused, new Set(others.map(({ fence }) => fence)));
  }

  async close(): Promise<void> {
    while (this.#flight) await this.#flight;
  }

  #enter(items: Settlement[]): Batch {
    let settle: Batch["resolve"] | undefined;
    const written = new Promise<Written>((resolve) => {
      settle = resolve;
    });
    const batch: Batch = { items, written, resolve: settle as Batch["resolve"] };
    for (const settlement of firstOfEach(items).first) this.#under.set(settlement.fence, { settlement, batch });
    this.#waiting.push(batch);
    this.#flight ??= this.#run();
    return batch;
  }

  async #run(): Promise<void> {
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      let count = 0;
      const until = this.#waiting.findIndex(({ items }) => {
        count += items.length;
        return count > limits.runsPerPoll;
      });
      await this.#settle(this.#waiting.splice(0, until < 0 ? this.#waiting.length : Math.max(1, until)));
    }
    this.#flight = undefined;
  }

  async #settle(batches: Batch[]): Promise<void> {
    const items = batches.flatMap((batch) => batch.items);
    const failed = new Map<number, unknown>();
    const refused = await this.#write(items, failed);
    for (const { fence } of items) this.#under.delete(fence);
    for (const { resolve } of batches) resolve({ refused, failed });
  }

  /** @param failed receives the fences of verdicts that could not be written, with the error @returns the fences that were refused */
  async #write(items: Settlement[], failed: Map<number, unknown>): Promise<Set<number>> {
    try {
      return await this.#claims.settle((items[0] as Settlement).sessionId as number, items, this.#now());
    } catch (error) {
      const claims = [...new Set(items.map(({ fence }) => fence))];
      const isStopped = isCarillonError(error, "STOPPED");
      // The store is reachable, so one of the verdicts must cause the error: the batch is split, so that the others are written.
      if (claims.length > 1 && !isStopped) {
        const half = new Set(claims.slice(0, claims.length >> 1));
        const refused = await this.#write(
          items.filter(({ fence }) => half.has(fence)),
          failed,
        );
        const rest = items.filter(({ fence }) => !half.has(fence));
        return new Set([...refused, ...(await this.#write(rest, failed))]);
      }
      for (const fence of claims) failed.set(fence, error);
      const run = items[0]?.runId;
      this.#log.error({ error: messageOf(error), run }, "a verdict of a remote worker could not be written");
      return new Set();
    }
  }
}

const amongThese = (fences: Set<number>, these: Set<number>) =>
  new Set([...fences].filter((fence) => these.has(fence)));

/** @throws the store's error for one of these fences; errors for other polls in the same batch are not thrown here */
async function answerOf({ written }: Batch, these: Set<number>): Promise<Set<number>> {
  const { refused, failed } = await written;
  for (const fence of these) if (failed.has(fence)) throw failed.get(fence);
  return amongThese(refused, these);
}

/** Two copies of one verdict may differ in the retry's due time and in the run's end, so neither time is compared. */
function saysTheSame({ verdict: one }: Settlement, { verdict: other }: Settlement): boolean {
  const text = (verdict: Verdict) => JSON.stringify(verdict.kind === "retry" ? { ...verdict, dueMs: 0 } : verdict);
  return text(one) === text(other);
}
