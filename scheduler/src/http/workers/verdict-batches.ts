import { isCarillonError, messageOf } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore, Settlement, Verdict } from "../../run/claim-store.ts";
import { firstOfEach } from "../../run/first-of-each.ts";

/** The results of writing a batch of verdicts. Both collections identify a verdict by the fence of its claim. */
interface Written {
  refused: Set<number>;
  /** The verdicts that the store could not write, each with the store's error. */
  failed: Map<number, unknown>;
}

interface Batch {
  items: Settlement[];
  written: Promise<Written>;
  resolve: (written: Written) => void;
}

/**
 * Writes the verdicts of all remote workers to the store. (A verdict is a worker's report of how an attempt ended.) One statement runs at a
 * time; verdicts that arrive meanwhile go into the next statement. If a worker repeats a verdict that is being written, because its earlier
 * poll timed out, the verdict is written only once. A different verdict on the same claim waits until the first is written, so that the
 * store can refuse the second one.
 */
export class VerdictBatches {
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
   * Writes these verdicts. If several of them concern one claim, only the first of them counts.
   * @returns the fences of the claims whose verdict the store refused because the claim was over
   * @throws the store's error for a verdict that could not be written, once all others are written
   */
  async add(settlements: Settlement[]): Promise<Set<number>> {
    const { first, later } = firstOfEach(settlements);
    const fresh: Settlement[] = [];
    const others: Settlement[] = [];
    /** For each batch, the fences that this call asked for. A batch also holds verdicts of other polls, some of them on the same claims. */
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
      // Each earlier verdict's result is returned to the poll that sent the verdict, so this call only waits for the writes.
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

  /** Sends verdicts that waited until another verdict on their claim was written. @returns the fences of refused verdicts in `others` */
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
      // The batch is written again in two halves, recursively, so that only the verdict that causes the error remains unwritten.
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

/**
 * @returns the fences among `these` whose verdict was refused
 * @throws the store's error for one of `these`; errors of other polls' verdicts in the same batch are not thrown
 */
async function answerOf({ written }: Batch, these: Set<number>): Promise<Set<number>> {
  const { refused, failed } = await written;
  for (const fence of these) if (failed.has(fence)) throw failed.get(fence);
  return amongThese(refused, these);
}

/** A repeated verdict may have a different retry time (`dueMs`) and end time, so neither is compared. */
function saysTheSame({ verdict: one }: Settlement, { verdict: other }: Settlement): boolean {
  const text = (verdict: Verdict) => JSON.stringify(verdict.kind === "retry" ? { ...verdict, dueMs: 0 } : verdict);
  return text(one) === text(other);
}
