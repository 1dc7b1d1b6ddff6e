import { messageOf } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore, Settlement } from "../../run/claim-store.ts";

interface Batch {
  items: Settlement[];
  refused: Promise<Set<number>>;
  resolve: (refused: Set<number>) => void;
  reject: (error: unknown) => void;
}

/**
 * Verdicts of all remote workers on their way to the store: one statement at a time, and what comes meanwhile goes with
 * the next. A verdict that is repeated while it is under way (its worker gave up on this answer) is sent once.
 */
export class Settling {
  readonly #claims: ClaimStore;
  readonly #now: () => number;
  readonly #log: Log;
  readonly #under = new Map<number, Batch>();
  #waiting: Batch[] = [];
  #flight: Promise<void> | undefined;

  constructor(claims: ClaimStore, now: () => number, log: Log) {
    this.#claims = claims;
    this.#now = now;
    this.#log = log;
  }

  /** @returns the fences whose verdict was refused: the claim was over */
  async add(settlements: Settlement[]): Promise<Set<number>> {
    const fresh = settlements.filter(({ fence }) => !this.#under.has(fence));
    const batches = new Set(settlements.flatMap(({ fence }) => this.#under.get(fence) ?? []));
    if (fresh.length > 0) batches.add(this.#enter(fresh));
    const refused = new Set<number>();
    for (const batch of batches) for (const fence of await batch.refused) refused.add(fence);
    return refused;
  }

  async close(): Promise<void> {
    while (this.#flight) await this.#flight;
  }

  #enter(items: Settlement[]): Batch {
    let settle: Pick<Batch, "resolve" | "reject"> | undefined;
    const refused = new Promise<Set<number>>((resolve, reject) => {
      settle = { resolve, reject };
    });
    const batch: Batch = { items, refused, ...(settle as Pick<Batch, "resolve" | "reject">) };
    for (const { fence } of items) this.#under.set(fence, batch);
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
    try {
      const refused = await this.#claims.settle((items[0] as Settlement).sessionId as number, items, this.#now());
      for (const { fence } of items) this.#under.delete(fence);
      for (const { resolve } of batches) resolve(refused);
    } catch (error) {
      // The store is not away, so something in one of them is at fault: the others must not suffer for it.
      if (batches.length > 1) {
        for (const batch of batches) await this.#settle([batch]);
        return;
      }
      for (const { fence } of items) this.#under.delete(fence);
      this.#log.error(
        { error: messageOf(error), verdicts: items.length },
        "verdicts of a remote worker could not be written",
      );
      for (const { reject } of batches) reject(error);
    }
  }
}
