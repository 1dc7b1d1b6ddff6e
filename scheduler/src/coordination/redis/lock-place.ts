import { type Clock, systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import type { RedisConnection } from "./connection.ts";

export interface RedisLockPlaceOptions {
  /**
   * Returns an integer higher than every number it returned before, to any process, such as the next value of a sequence in the
   * store. Called for each lock name at its first use, in a new era, and if Redis may have lost the fences that it issued:
   * after a restart, wipe or fail-over.
   */
  readonly fenceBase: () => Promise<number>;
  /** The number of the current era of locks. In a new era, the fences of each lock name get a new base; default 0. */
  readonly era?: number;
  readonly log: (line: string) => void;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** The state that all locks of one connection share. */
export class RedisLockPlace {
  readonly connection: RedisConnection;
  readonly clock: Clock;
  readonly random: Random;
  readonly fenceBase: () => Promise<number>;
  readonly era: number;
  readonly channel: string;
  readonly held = new Set<{ release(): Promise<boolean> }>();
  /** For each waiting token, the function to call when a message says that the token is next in the queue. */
  readonly waiting = new Map<string, () => void>();
  readonly log: (line: string) => void;
  #following = false;

  constructor(
    connection: RedisConnection,
    { clock = systemClock, random = systemRandom, fenceBase, era = 0, log }: RedisLockPlaceOptions,
  ) {
    this.connection = connection;
    this.clock = clock;
    this.random = random;
    this.fenceBase = fenceBase;
    this.era = era;
    this.log = log;
    const { prefix, database } = connection.address;
    this.channel = `{${prefix}}:turns:${database}`;
  }

  /** Subscribes to the channel. Messages may have been lost before the subscription, so all waiting tokens try again when it begins. */
  follow(): void {
    if (this.#following) return;
    this.#following = true;
    this.connection.follow(
      this.channel,
      (token) => this.waiting.get(token)?.(),
      () => {
        for (const look of this.waiting.values()) look();
      },
    );
  }

  async base(): Promise<string> {
    const base = await this.fenceBase();
    // A base has 31 bits: Redis's integers have 63 bits without the sign, and the counter takes 32 of them.
    if (!Number.isInteger(base) || base < 0 || base >= 2 ** 31) {
      throw new CarillonError("OPTION_INVALID", `fenceBase gave ${base}`, {
        hint: "It must give whole numbers from 0 to 2,147,483,647, each above all before.",
      });
    }
    return String(BigInt(base) << 32n);
  }
}
