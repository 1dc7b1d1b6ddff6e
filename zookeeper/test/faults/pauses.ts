import { setTimeout as sleep } from "node:timers/promises";
import { Child } from "./child.ts";

export type Recipe = "latch" | "selector" | "mutex";

export interface PausesOptions {
  readonly hosts: string;
  readonly path: string;
  readonly recipe: Recipe;
  readonly contenders: number;
  readonly sessionTimeoutMs: number;
}

interface Belief {
  readonly fence: bigint;
  /**
   * Monotonic ms of a clock that all processes share: `since` is when the contender got the lock, `looked` when it last checked that it
   * held the lock, `acted` when it had written after that check.
   */
  readonly since: number;
  readonly looked: number;
  readonly acted: number;
}

/** The results of one group of contenders. */
export interface Account {
  readonly wrong: string[];
  pauses: number;
  /** Writes that the resource accepted. */
  accepted: number;
  /** Writes of earlier holders that the resource refused. `blindRefused` counts those that the contender sent without a check. */
  refused: number;
  blindRefused: number;
  /** Writes that the resource accepted although another contender had already written with the same fence. */
  staleAccepted: number;
  readonly beliefs: Belief[];
}

/**
 * Contenders for one lock, each in its own process, and the resource that the lock protects. The resource refuses a write if it has
 * already accepted one with a larger fence. The holder is repeatedly stopped (SIGSTOP) until another contender has written.
 */
export class PausedGroup {
  readonly account: Account = {
    wrong: [],
    pauses: 0,
    accepted: 0,
    refused: 0,
    blindRefused: 0,
    staleAccepted: 0,
    beliefs: [],
  };
  readonly #options: PausesOptions;
  readonly #children: Child[] = [];
  readonly #owners = new Map<bigint, Child>();
  #highest = 0n;
  #holder: Child | undefined;
  #wake: () => void = () => undefined;

  constructor(options: PausesOptions) {
    this.#options = options;
  }

  /**
   * Starts the contenders, and pauses a holder this many times. @param chance returns numbers in [0, 1)
   * @throws if a contender ends, or an expected event does not happen within a minute
   */
  async run(pauses: number, chance: () => number): Promise<void> {
    const { contenders, ...told } = this.#options;
    for (let index = 0; index < contenders; index++) {
      const child = new Child("contender.mjs", "CARILLON_TEST_CONTENDER", { ...told, id: `contender-${index}` });
      this.#children.push(child);
      child.onMessage = (message) => this.#heard(child, message);
      void child.gone.then(() => this.#wake());
    }
    await Promise.all(this.#children.map((child) => child.next("ready")));
    for (let pause = 0; pause < pauses; pause++) {
      await this.#until(() => this.#holder !== undefined);
      await sleep(30 * chance());
      const holder = this.#holder as Child;
      const fence = this.#highest;
      holder.signal("SIGSTOP");
      await this.#until(() => this.#holder !== holder && this.#highest > fence);
      await sleep(20 * chance());
      holder.signal("SIGCONT");
      await this.#until(() => this.account.beliefs.some((belief) => belief.fence === fence));
      this.account.pauses++;
    }
  }

  async end(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()));
  }

  /**
   * Returns the overlaps in ms: by how much a holder's last successful check (`looked`), or its last write after a check (`acted`), was
   * later than the beginning of its successor's hold.
   */
  overlaps(what: "looked" | "acted"): readonly number[] {
    const beliefs = this.account.beliefs.toSorted((a, b) => (a.fence < b.fence ? -1 : 1));
    return beliefs.slice(1).flatMap((next, index) => {
      const overlap = (beliefs[index]?.[what] ?? 0) - next.since;
      return overlap > 0 ? [overlap] : [];
    });
  }

  #heard(child: Child, message: { said: string }): boolean {
    if (message.said === "write") {
      const { fence, blind = false } = message as unknown as { fence: string; blind?: boolean };
      this.#write(child, BigInt(fence), blind);
    } else if (message.said === "belief") {
      const { fence, ...times } = message as unknown as Omit<Belief, "fence"> & { fence: string };
      this.account.beliefs.push({ ...times, fence: BigInt(fence) });
    } else return false;
    this.#wake();
    return true;
  }

  /** The protected resource: refuses a write whose fence is smaller than the highest so far. */
  #write(child: Child, fence: bigint, blind: boolean): void {
    const owner = this.#owners.get(fence) ?? child;
    this.#owners.set(fence, owner);
    if (owner !== child) this.account.wrong.push(`two contenders have the fence ${fence}`);
    if (fence < this.#highest) {
      this.account.refused++;
      if (blind) this.account.blindRefused++;
      return;
    }
    this.account.accepted++;
    // Counts a write that the fence did not keep out: another contender has already written with the same fence.
    if (fence === this.#highest && this.#holder !== undefined && this.#holder !== child) this.account.staleAccepted++;
    this.#highest = fence;
    this.#holder = child;
  }

  async #until(condition: () => boolean): Promise<void> {
    const deadline = performance.now() + 60_000;
    while (!condition()) {
      if (performance.now() > deadline) throw new Error(`${this.#options.path}: nothing happens any more`);
      const dead = this.#children.find(({ process }) => process.exitCode !== null);
      if (dead) await dead.next("a reason"); // throws with the process's stderr
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1_000);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
}
