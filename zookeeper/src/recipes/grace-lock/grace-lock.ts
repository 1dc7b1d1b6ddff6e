/**
 * A lock for long, recurring work that only one of several processes may do, such as a nightly run of two hours. The holder keeps the lock
 * between uses. When the holder vanishes, all other contenders wait for a grace period, because a holder is often disconnected only for a
 * moment and can best continue its work; during the grace only the old holder can take the lock back.
 *
 * A new contender cannot know when the grace began. It reads that the last holder did not release the lock, and waits a whole grace from
 * that moment on. Clocks of different machines are never compared: each contender measures with its own clock from a moment that is not
 * before the vacancy, and takes the lock by compare-and-set on the vacancy that it saw. So no contender takes the lock too early, and
 * only one of several contenders succeeds.
 *
 * The old holder relies on the same bound. A session that has ended by this process's clock cannot have ended earlier in ZooKeeper, so no
 * other contender gets the lock before a grace has passed since then. During that time the running use may continue while the lock is
 * taken back with a new fence. After the grace the use must stop, and its signal aborts.
 */
import { randomUUID } from "node:crypto";
import { isZooKeeperError, ZooKeeperError } from "../../base/errors.ts";
import { callNames, checkNames } from "../../base/options.ts";
import type { CallOptions } from "../../operations/operations.ts";
import { isPassing } from "../base/follow.ts";
import { Belief } from "./belief.ts";
import type { Holding, LastUse, LockClock, LockPlace, LockRecord, Sight } from "./place.ts";
import { lockClock } from "./place.ts";
import type { GraceLockAct, GraceLockEvent, GraceLockState, Situation } from "./states.ts";
import { nextStep, stateOf } from "./states.ts";
import { Turns } from "./turns.ts";
import { RunningUse, type TakenOver, type Use } from "./use.ts";

const defaultGraceMs = 10_000;
/** Pause in ms before reading the lock's state again after an error, if a running use or a refused contender needs the state. */
const retryMs = 250;

export interface GraceLockOptions {
  /** The contender's name, unique among processes. It must stay the same after a restart, because it identifies the previous owner. */
  readonly owner: string;
  /** The grace period in ms, default 10,000. A contender waits for the longer of its own grace and the vanished holder's. */
  readonly graceMs?: number;
  /**
   * Called before `tryLock` resolves if the lock was taken over from a holder that vanished, or that released the lock during a use. That
   * holder may be a former process of this owner. If this option is given, a contender whose `tryLock` was refused takes the lock over
   * automatically at the end of the grace; a later `tryLock` then uses the lock.
   */
  readonly onTakenOver?: (from: TakenOver) => void;
  /** Called when the running use has lost the lock and must stop; its signal aborts with the same error (NOT_HELD). */
  readonly onLost?: (why: ZooKeeperError) => void;
  readonly onState?: (state: GraceLockState) => void;
  readonly clock?: LockClock;
}

export const graceLockNames: ReadonlySet<string> = new Set<keyof GraceLockOptions>([
  "owner",
  "graceMs",
  "onTakenOver",
  "onLost",
  "onState",
  "clock",
]);

export class GraceLock {
  readonly owner: string;
  readonly #place: LockPlace;
  readonly #options: GraceLockOptions;
  readonly #graceMs: number;
  readonly #clock: LockClock;
  readonly #life = randomUUID();
  readonly #unwatch: () => void;
  readonly #turns: Turns;
  #situation: Situation = "CREATED";
  #holding: Holding | undefined;
  /** The stored record while this process holds the lock; otherwise the record that it read last. */
  #record: LockRecord | undefined;
  #vacancy: { version: string; sinceMono: number } | undefined;
  #takenOver: TakenOver | undefined;
  #use: RunningUse | undefined;
  #asking = false;
  #closing = false;
  /** True if another process held the lock at the last call of `tryLock`, and this process has not taken it since. */
  #refused = false;
  readonly #belief: Belief;
  #attending = false;
  #cancelTakeover: () => void = () => undefined;
  #unhear: () => void = () => undefined;

  /** @throws OPTION_INVALID */
  constructor(place: LockPlace, options: GraceLockOptions) {
    checkNames(`the grace lock ${place.name}`, place.name, options, graceLockNames);
    this.#graceMs = options.graceMs ?? defaultGraceMs;
    if (typeof options.owner !== "string" || options.owner === "") {
      throw invalid("owner", options.owner, "a name that is this process's own and stays the same when it restarts");
    }
    if (!Number.isFinite(this.#graceMs) || this.#graceMs < 0) throw invalid("graceMs", options.graceMs, "0 or more");
    this.owner = options.owner;
    this.#place = place;
    this.#options = options;
    this.#clock = options.clock ?? lockClock;
    this.#turns = new Turns(place.name, this.#clock);
    const over = () => void this.#step("grace over");
    this.#belief = new Belief(this.#clock, this.#graceMs, () => this.#holding, over);
    place.lives.add(this.#life);
    this.#unwatch = place.watch(() => this.#onChange());
  }

  get state(): GraceLockState {
    return stateOf(this.#situation);
  }

  /** The fence of the current holding; undefined if this process does not hold the lock, by the clock at the time of the call. */
  get fence(): bigint | undefined {
    return this.#holding && this.#holding.remainingMs > 0 ? this.#holding.fence : undefined;
  }

  /** Aborts once this lock object is closed. */
  get closed(): AbortSignal {
    return this.#turns.closed;
  }

  /**
   * Takes the lock, or uses it again if this process already holds it; in both cases sends a request. Waits for a connection, and for the
   * end of the grace if another owner's process vanished.
   * @returns undefined if another process holds the lock, or another caller in this process uses it or is just taking it
   * @throws CLOSED, ABORTED, or a permanent error of the lock's service (NO_AUTH, …)
   */
  async tryLock(options: CallOptions = {}): Promise<Use | undefined> {
    checkNames(`the grace lock ${this.#place.name}`, this.#place.name, options, callNames);
    const { signal } = options;
    this.#requireOpen();
    if (this.#use || this.#asking) return undefined;
    this.#asking = true;
    try {
      for (;;) {
        this.#requireOpen();
        const seen = this.#turns.changes;
        const outcome = await this.#turns.inLine(() => this.#attempt(signal), signal);
        if (outcome === "held") {
          this.#refused = true;
          return undefined;
        }
        if (typeof outcome === "object") return outcome;
        await this.#turns.change(seen, signal, outcome);
      }
    } catch (error) {
      this.#turns.wake(); // another caller in this process may be waiting for this one to finish
      throw error;
    } finally {
      this.#asking = false;
    }
  }

  /** Like `tryLock`, but waits while another contender holds the lock or another caller uses it. */
  async lock(options: CallOptions = {}): Promise<Use> {
    for (;;) {
      const seen = this.#turns.changes;
      const use = await this.tryLock(options);
      if (use) return use;
      await this.#turns.change(seen, options.signal);
    }
  }

  /**
   * Releases the lock, so that the next contender need not wait for the grace. Stops a running use, even if it has lost the lock.
   * @returns false if this process does not hold the lock @throws CLOSED; an error that prevents the release, such as NO_AUTH
   */
  async release(): Promise<boolean> {
    this.#requireOpen();
    return this.#release();
  }

  /** Reads the record of the last use by any owner; undefined if the lock was never used. */
  async lastUse({ signal }: CallOptions = {}): Promise<LastUse | undefined> {
    this.#requireOpen();
    // Queued behind other requests, because an aborted read removes its watch, and a concurrent read must not rely on that watch.
    const { record } = await this.#turns.inLine(() => this.#place.look(this.#turns.withClose(signal)), signal);
    return record?.use ?? undefined;
  }

  /** Releases the lock if this process holds it, and stops contending. @throws an error that prevents the release, such as NO_AUTH */
  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    try {
      await this.#release();
    } finally {
      this.#turns.close();
      this.#unwatch();
      this.#belief.stop();
      this.#cancelTakeover();
      this.#place.lives.delete(this.#life);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @returns the use; "held" if another contender has the lock; or ms to wait before the next attempt */
  async #attempt(signal?: AbortSignal): Promise<Use | "held" | number> {
    if (this.#holding) {
      const use = await this.#begin(this.#holding, signal);
      if (use !== undefined) return use;
    }
    const sight = await this.#place.look(this.#turns.withClose(signal));
    const found = this.#find(sight);
    if (found === "held") return "held";
    if (found === "ours") return 0;
    const waitMs = this.#graceLeftMs(sight);
    if (waitMs > 0) return waitMs;
    const holding = await this.#take(sight);
    if (!holding) return 0;
    if (this.#isUnwanted(signal)) {
      await this.#release(true);
      return 0;
    }
    return (await this.#begin(holding, signal)) ?? 0;
  }

  /** True if the caller has given up or the lock object is closing, so that this process must not keep the lock. */
  #isUnwanted(signal?: AbortSignal): boolean {
    return signal?.aborted || this.#closing;
  }

  /** Sets the state and the record to what was read. @returns the lock's condition for this contender */
  #find(sight: Sight): "free" | "held" | "vacant" | "ours" {
    const holding = this.#holding;
    if (holding && holding.remainingMs > 0 && holding.seenIn(sight)) {
      this.#step("found ours");
      return "ours";
    }
    this.#hold(undefined);
    if (sight.record && sight.record.life !== this.#life) this.#step("overtaken");
    this.#record = sight.record ?? (sight.forgetful ? this.#record : undefined);
    const lingers = sight.record ? !sight.record.released : sight.forgetful === true;
    // A holder with this owner's name counts as vanished, because it is left over from an earlier session or process of this owner.
    const found = sight.held && !this.#isOurs(sight.record) ? "held" : lingers ? "vacant" : "free";
    if (found !== "vacant") this.#vacancy = undefined;
    // The holder had vanished before the answer arrived, so the vacancy began before this moment.
    else if (this.#vacancy?.version !== sight.version) {
      this.#vacancy = { version: sight.version, sinceMono: this.#clock.monotonic() };
    }
    this.#step(`found ${found}`);
    return found;
  }

  /** True if the record was written by this lock object, or by a former process of this owner. */
  #isOurs(record: LockRecord | undefined): boolean {
    if (record?.owner !== this.owner) return false;
    return record.life === this.#life || !this.#place.lives.has(record.life);
  }

  /** Returns the ms for which this contender must still wait before it may take the lock; 0 if it may take it now. */
  #graceLeftMs(sight: Sight): number {
    if (!this.#vacancy || this.#isOurs(this.#record)) return 0;
    const graceMs = Math.max(this.#graceMs, sight.record?.graceMs ?? 0);
    return Math.max(0, this.#vacancy.sinceMono + graceMs - this.#clock.monotonic());
  }

  async #take(sight: Sight): Promise<Holding | undefined> {
    const previous = sight.record ?? this.#record;
    const use = previous?.use ?? null;
    const record = { owner: this.owner, life: this.#life, graceMs: this.#graceMs, released: false, use };
    const holding = await this.#place.take(sight, record);
    if (!holding || holding.signal.aborted) return undefined;
    const vanished = this.#vacancy !== undefined;
    this.#hold(holding);
    this.#record = record;
    this.#vacancy = undefined;
    this.#refused = false;
    this.#step("took");
    this.#belief.watch();
    if (previous && previous.life !== this.#life) {
      this.#takenOver = vanished ? { owner: previous.owner, use: use ?? undefined } : cutOff(previous);
      if (this.#takenOver) this.#options.onTakenOver?.(this.#takenOver);
    }
    return holding;
  }

  /**
   * Begins a use and records it.
   * @returns undefined if the lock is no longer held; 0 if it was released because the caller gave up or this lock is being closed
   */
  async #begin(holding: Holding, signal?: AbortSignal): Promise<Use | 0 | undefined> {
    const before = this.#record;
    const beganMs = this.#clock.wall();
    const lastUse = { owner: this.owner, fence: String(holding.fence), beganMs, endedMs: null, note: null };
    if (!(await this.#write(holding, lastUse))) return undefined;
    if (this.#isUnwanted(signal)) {
      this.#record = before; // no caller gets this use, so the record must not contain it
      await this.#release(true);
      return 0;
    }
    const use = new RunningUse(holding.fence, this.#takenOver, {
      held: () => this.#use === use && this.#belief.stands,
      note: (note) => this.#recordUse(use, () => ({ note })),
      end: () => this.#endUse(use),
    });
    this.#takenOver = undefined;
    this.#use = use;
    this.#step("began");
    return use;
  }

  /** Writes the record with this use. @returns true if it was written and the holding is still current */
  async #write(holding: Holding, use: LastUse): Promise<boolean> {
    const record = { ...(this.#record as LockRecord), use };
    try {
      if (this.#holding !== holding || !(await holding.write(record))) return false;
    } catch (error) {
      if (holding.signal.aborted) return false;
      throw error;
    }
    this.#record = record;
    return this.#holding === holding && !holding.signal.aborted;
  }

  async #endUse(use: RunningUse): Promise<boolean> {
    try {
      return await this.#recordUse(use, () => ({ endedMs: this.#clock.wall() }));
    } finally {
      if (this.#use === use) {
        this.#use = undefined;
        this.#step("finished");
      }
      this.#turns.wake();
    }
  }

  /**
   * Writes a change of the use to the record. If the lock was lost meanwhile, it is taken back first, so that finished work is not recorded
   * as unfinished. @returns false if the use was stopped first
   */
  async #recordUse(use: RunningUse, change: () => Partial<LastUse>): Promise<boolean> {
    const work = async () => {
      while (this.#use === use) {
        const seen = this.#turns.changes;
        if (!this.#holding) await this.#attend();
        const [holding, record] = [this.#holding, this.#record];
        if (!holding || !record?.use) await this.#turns.change(seen, use.signal);
        else if (await this.#write(holding, { ...record.use, ...change() })) return true;
        else if (this.#holding === holding) this.#hold(undefined);
      }
      return false;
    };
    if (this.#use !== use) return false;
    try {
      return await this.#turns.inLine(work, use.signal);
    } catch (error) {
      if (use.signal.aborted) return false;
      throw error;
    }
  }

  async #release(lined = false): Promise<boolean> {
    this.#stopUse();
    if (!this.#holding) return false;
    const work = async () => {
      this.#stopUse(); // stops a use that was begun while this release waited in the queue
      const [holding, record] = [this.#holding, this.#record];
      if (!holding || !record) return false;
      // The record of a stopped use gets no end time, so that the next holder sees that the work may be unfinished.
      const released = await this.#giveUp(holding, { ...record, released: true });
      this.#hold(undefined);
      this.#belief.stop();
      this.#step(released ? "released" : "session ended");
      return released;
    };
    try {
      return await (lined ? work() : this.#turns.inLine(work));
    } finally {
      this.#onChange();
    }
  }

  #stopUse(): void {
    const use = this.#use;
    if (!use) return;
    this.#use = undefined;
    this.#step("finished");
    use.stop(this.#notHeld("has been released"));
  }

  /** Releases the holding and writes the record. @returns false if the holding had ended before */
  async #giveUp(holding: Holding, record: LockRecord): Promise<boolean> {
    this.#unhear(); // a release may abort the holding's signal, which must not count as the loss of a session
    try {
      return await holding.release(record);
    } catch (error) {
      // The session ended before the release. The other contenders must then wait for the grace, which does no other harm.
      if (holding.signal.aborted) return false;
      this.#hold(holding);
      throw error;
    }
  }

  #hold(holding: Holding | undefined): void {
    this.#unhear();
    if (this.#holding && !holding) this.#belief.lapse();
    this.#holding = holding;
    if (!holding) return;
    const onEnd = () => this.#onEnd(holding);
    holding.signal.addEventListener("abort", onEnd, { once: true });
    this.#unhear = () => holding.signal.removeEventListener("abort", onEnd);
  }

  #onEnd(holding: Holding): void {
    if (this.#holding !== holding) return;
    this.#hold(undefined);
    this.#step("session ended");
    this.#belief.watch();
    this.#onChange();
  }

  #step(event: GraceLockEvent): GraceLockAct | undefined {
    const before = this.state;
    const { to, act } = nextStep(this.#situation, event);
    if (act === "refuse") throw new Error(`grace lock: ${event} in ${this.#situation}`);
    this.#situation = to;
    if (act === "lose") this.#lose(event);
    if (this.state !== before) this.#options.onState?.(this.state);
    return act;
  }

  #lose(event: GraceLockEvent): void {
    const why = event === "grace over" ? "could not be taken back within the grace" : "is another's now";
    const error = this.#notHeld(why);
    const use = this.#use;
    this.#use = undefined;
    use?.stop(error);
    this.#options.onLost?.(error);
    this.#turns.wake();
  }

  #notHeld(why: string): ZooKeeperError {
    return new ZooKeeperError("NOT_HELD", `the grace lock ${this.#place.name} ${why}`, {
      path: this.#place.name,
      hint: "stop what was done under it; writes must carry the fence, so that late ones are refused",
    });
  }

  /** Called when the lock's state may have changed: wakes waiting callers, and reads the state again. */
  #onChange(): void {
    this.#turns.wake();
    if (this.#attending || this.#turns.closed.aborted) return;
    this.#attending = true;
    this.#turns
      .inLine(async () => {
        this.#attending = false;
        await this.#attend();
      })
      .catch((error: unknown) => {
        this.#attending = false;
        // A caller in `tryLock` gets the same error itself. The state is read again for a running use, which otherwise ends with the
        // grace, and after a transient error for a contender that waits to take the lock over.
        if (isZooKeeperError(error, "CLOSED") || !(this.#use || (this.#refused && isPassing(error)))) return;
        this.#clock.after(retryMs, () => this.#onChange());
      });
  }

  /**
   * Reads the lock's state. Takes the lock back for a running use that lost it, and takes over a vanished holder's unfinished work for a
   * contender that was refused.
   */
  async #attend(): Promise<void> {
    for (;;) {
      const sight = await this.#place.look(this.#turns.closed);
      const found = this.#find(sight);
      this.#cancelTakeover();
      if (found === "held" || found === "ours") return;
      if (!this.#use) {
        if (!this.#refused || !this.#options.onTakenOver || !(this.#vacancy || cutOff(sight.record))) return;
        const waitMs = this.#graceLeftMs(sight);
        if (waitMs > 0) {
          this.#cancelTakeover = this.#clock.after(waitMs, () => this.#onChange());
          return;
        }
      }
      const holding = await this.#take(sight);
      if (holding && this.#closing) await this.#release(true);
      const use = this.#use as RunningUse | undefined;
      if (!holding || !use || !this.#record?.use) continue;
      use.fence = holding.fence;
      await this.#write(holding, { ...this.#record.use, fence: String(holding.fence) });
    }
  }

  #requireOpen(): void {
    if (this.#closing) throw this.#turns.closedError();
  }
}

/** Returns the record's unfinished use, if the lock was released or lost during a use; otherwise undefined. */
function cutOff(record: LockRecord | undefined): TakenOver | undefined {
  const use = record?.use;
  return use && use.endedMs === null ? { owner: use.owner, use } : undefined;
}

function invalid(option: string, value: unknown, right: string): ZooKeeperError {
  return new ZooKeeperError("OPTION_INVALID", `the grace lock's ${option} is ${JSON.stringify(value)}`, {
    hint: `it is ${right}`,
  });
}
