import { pause } from "../../../scheduler/src/base/clock.ts";
import { mix } from "../../../scheduler/src/base/random.ts";
import type { Lock } from "../../../scheduler/src/cluster/locks.ts";
import type { Carillon } from "../../../scheduler/src/library/carillon.ts";
import { type Attempt, type LockWrite, type Look, processOf } from "../lock-history.ts";
import { Dice } from "../plan/dice.ts";
import { gpuPermits, type LocksPlayed } from "../plan/locks.ts";
import type { Recorder } from "../play/recorder.ts";
import type { Machine } from "../world/machine.ts";
import type { Network } from "../world/network.ts";
import type { Universe } from "../world/universe.ts";

type GraceLock = Awaited<ReturnType<Carillon["graceLock"]>>;

/** A process that only uses locks, from one start to its end. */
export interface Contender {
  readonly name: string;
  readonly life: number;
  readonly machine: Machine;
  readonly carillon: Carillon;
}

/** A lock that a process has acquired; its state can be read at any time. */
interface InHand {
  readonly contender: Contender;
  readonly permits: number;
  readonly holding: string;
  /** True if the process believes that it holds the lock. */
  believes(): boolean;
  /** The fence of the node that the process reports as its own; undefined: none. */
  fence(): bigint | undefined;
}

/** How a contender uses a lock that it holds. */
interface Use {
  /** Returns the fence of the held node. */
  fence(): bigint;
  /** True if the holder writes to the resource that the lock protects. */
  readonly writes: boolean;
  note?(): Promise<unknown>;
}

export interface ContendersOptions {
  readonly universe: Universe;
  readonly network: Network;
  readonly recorder: Recorder;
  readonly seed: number;
  readonly played: LocksPlayed;
  /** Called when a process has acquired a lock; `forMs` is how long it will hold the lock. */
  readonly onHeld: (name: string, forMs: number) => void;
}

/**
 * Error codes that occur without a bug: the store is unreachable, other processes hold the lock, the process stops, or the lock was lost.
 */
const expected = new Set([
  "STORE_UNREACHABLE",
  "LOCK_BUSY",
  "STOPPED",
  "LOCK_NOT_HELD",
  "CLOSED",
  "NOT_HELD",
  "ABORTED",
]);
const over = new Set(["STOPPED", "CLOSED"]);

/**
 * Processes that compete for locks. A holder checks that it holds the lock, waits, and writes to a resource that refuses a lower fence than
 * the highest one seen. A process that is suspended between check and write still writes. Whenever a process acquires a lock, the beliefs
 * of all earlier holders are recorded, even of suspended ones.
 */
export class Contenders {
  readonly looks: Look[] = [];
  readonly writes: LockWrite[] = [];
  readonly attempts: Attempt[] = [];
  /** The start times of the processes: each restart begins a new life. */
  readonly lives: { name: string; life: number; fromMs: number }[] = [];
  readonly #options: ContendersOptions;
  readonly #hands = new Map<string, Set<InHand>>();
  readonly #highest = new Map<string, number>();
  #holdings = 0;

  constructor(options: ContendersOptions) {
    this.#options = options;
  }

  begin(contender: Contender): void {
    const { universe, played, seed, recorder } = this.#options;
    const { name, life, carillon } = contender;
    this.lives.push({ name, life, fromMs: universe.nowMs });
    const dice = (lock: number) => new Dice(mix(mix(mix(seed, life), name.charCodeAt(1)), lock));
    const loops = [
      ...(played.ledger ? [this.#pass(contender, carillon.lock("ledger"), 1, dice(1))] : []),
      ...(played.gpu
        ? [this.#pass(contender, carillon.semaphore("gpu", { permits: gpuPermits }), gpuPermits, dice(2))]
        : []),
      ...(played.nightly ? [this.#passNightly(contender, dice(3))] : []),
    ];
    for (const loop of loops)
      loop.catch((error) => recorder.unexpected(`${name} and its locks: ${error?.stack ?? error}`));
  }

  /** True if the process believes that it holds some lock. */
  hasSome(name: string): boolean {
    return [...this.#hands.values()].some((hands) =>
      [...hands].some((hand) => hand.contender.name === name && hand.believes()),
    );
  }

  /** Called when the process was killed, so it holds no lock and waits for none any longer. */
  ended(machine: Machine): void {
    for (const hands of this.#hands.values())
      for (const hand of hands) if (hand.contender.machine === machine) hands.delete(hand);
    for (const attempt of this.attempts)
      if (attempt.process.startsWith(`${machine.name} `)) attempt.endedMs ??= this.#options.universe.nowMs;
  }

  async #pass(contender: Contender, lock: Lock, permits: number, dice: Dice): Promise<void> {
    const { machine } = contender;
    for (;;) {
      await pause(machine, dice.between(10, dice.one([500, 8_000])));
      const limit = dice.one([undefined, undefined, "2s", "30s"] as const);
      const isPatient = dice.chance(0.7);
      const ask = async () => (isPatient ? await lock.acquire({ wait: limit }) : await lock.tryAcquire());
      const held = await this.#attempt(lock.name, contender, ask);
      if (held === "over") return;
      if (!held) continue;
      const hand = this.#take(lock.name, {
        contender,
        permits,
        believes: () => held.held,
        fence: () => (held.held ? held.fence : undefined),
      });
      this.#says(lock.name, hand, held.fence); // records that this contender holds the lock
      await this.#use(lock.name, hand, dice, { fence: () => held.fence, writes: permits === 1 });
      await held.release();
      this.#options.universe.note(`${contender.name} gave up ${lock.name} ${held.fence}`);
    }
  }

  async #passNightly(contender: Contender, dice: Dice): Promise<void> {
    const { machine } = contender;
    const name = "nightly";
    const lock = await this.#open(name, contender);
    if (!lock) return;
    for (;;) {
      await pause(machine, dice.between(10, dice.one([1_000, 10_000])));
      const isPatient = dice.chance(0.5);
      const use = await this.#attempt(name, contender, () => (isPatient ? lock.lock() : lock.tryLock()));
      if (use === "over") return;
      if (use) {
        const its = {
          contender,
          permits: 1,
          believes: () => use.held,
          fence: () => (use.held ? lock.fence : undefined),
        };
        const hand = this.#take(name, its);
        const note = () => use.note(`of ${contender.name}`);
        await this.#use(name, hand, dice, { fence: () => use.fence, writes: true, note });
        if ((await this.#quietly(() => use.end())) === "over") return;
      }
      // Calls `release` even if the lock is not held; then it must have no effect.
      if (dice.chance(0.6) && (await this.#quietly(() => lock.release())) === "over") return;
    }
  }

  /** Opens the grace lock, and retries while the store is unreachable. @returns undefined if the process stops */
  async #open(name: string, { carillon, machine }: Contender): Promise<GraceLock | undefined> {
    for (;;) {
      const lock = await this.#quietly(() => carillon.graceLock(name, { grace: `${this.#options.played.graceMs}ms` }));
      if (lock === "over") return undefined;
      if (lock) return lock;
      await pause(machine, 1_000);
    }
  }

  /** Tries to acquire a lock, and records the attempt. @returns undefined if the lock could not be acquired; "over" if the process stops */
  async #attempt<T extends { readonly fence: bigint }>(
    lock: string,
    { name, life }: Contender,
    ask: () => Promise<T | undefined>,
  ): Promise<T | "over" | undefined> {
    const { universe } = this.#options;
    const attempt: Attempt = {
      lock,
      process: processOf(name, life),
      askedMs: universe.nowMs,
      endedMs: null,
      fence: null,
    };
    this.attempts.push(attempt);
    const got = await this.#quietly(ask);
    attempt.endedMs = universe.nowMs;
    if (got === undefined || got === "over") return got;
    attempt.fence = Number(got.fence);
    universe.note(`${name} has ${lock} ${got.fence}`);
    return got;
  }

  async #quietly<T>(work: () => Promise<T>): Promise<T | "over" | undefined> {
    try {
      return await work();
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === undefined || !expected.has(code)) throw error;
      return over.has(code) ? "over" : undefined;
    }
  }

  #take(lock: string, its: Omit<InHand, "holding">): InHand {
    const hand = { ...its, holding: `${its.contender.name} ${++this.#holdings}` };
    const hands = this.#hands.get(lock) ?? new Set();
    this.#hands.set(lock, hands.add(hand));
    for (const one of hands) if (!this.#look(lock, one) && one !== hand) hands.delete(one);
    return hand;
  }

  /**
   * Checks whether the process believes that it holds the lock, and records this belief, or the node that the process still
   * reports.
   * @returns whether the process believes so
   */
  #look(lock: string, hand: InHand): boolean {
    const fence = hand.fence();
    const isHeld = hand.believes();
    if (isHeld || fence !== undefined) this.#says(lock, hand, fence);
    return isHeld;
  }

  #says(lock: string, { contender, permits, holding }: InHand, fence: bigint | undefined): void {
    const { nowMs: atMs } = this.#options.universe;
    const process = processOf(contender.name, contender.life);
    this.looks.push({ lock, permits, process, holding, fence: fence === undefined ? null : Number(fence), atMs });
  }

  async #use(lock: string, hand: InHand, dice: Dice, { fence, writes, note }: Use): Promise<void> {
    const { name, machine } = hand.contender;
    const thinkMs = Array.from({ length: dice.whole(1, 4) }, () =>
      dice.between(5, dice.one([50, 1_000, 4_000, 9_000])),
    );
    this.#options.onHeld(
      name,
      thinkMs.reduce((sum, ms) => sum + ms, 0),
    );
    for (const ms of thinkMs) {
      if (!this.#look(lock, hand)) return;
      const own = fence();
      await pause(machine, ms);
      if (writes) this.#write(lock, hand.contender, Number(own));
      if (note && dice.chance(0.3)) await this.#quietly(note);
    }
  }

  /** Writes to a resource outside of the store. The write travels over the same simulated network. */
  #write(lock: string, { name, life }: Contender, fence: number): void {
    const { network, universe } = this.#options;
    network.send(`${name} place`, "to", network.latency(), () => {
      const accepted = fence >= (this.#highest.get(lock) ?? 0);
      if (accepted) this.#highest.set(lock, fence);
      this.writes.push({ lock, process: processOf(name, life), fence, atMs: universe.nowMs, accepted });
      universe.note(`${name} writes under ${lock} ${fence}: ${accepted ? "taken" : "refused"}`);
    });
  }
}
