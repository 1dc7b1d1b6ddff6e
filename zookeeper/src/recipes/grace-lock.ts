/**
 * A lock for long work that is done by one of several processes, again and again: a nightly run of two hours. Whoever
 * has it keeps it between uses. When its holder vanishes, everyone else waits a grace, because the holder is often
 * only cut off for a moment and is the one who can go on best; it gets the lock back first.
 *
 * How a newcomer knows of a grace that began before it came: it does not. It sees that the last holder did not release
 * the lock, and waits a whole grace from the moment when it first saw that. Nobody compares two machines' clocks: each
 * contender measures on its own, from a moment that cannot lie before the vacancy, and the take is a compare-and-set
 * on the very vacancy that it watched. So nobody takes early, and of all who take in the end, one does.
 *
 * The same bound serves the holder: a session that ended here by the clock cannot have ended earlier at the place, so
 * nobody else has the lock before the grace has passed from there. Until then the use that is running may go on and
 * the lock is taken back under it, with a new fence; after it the use must stop, and is told.
 */
import { randomUUID } from "node:crypto";
import { isZooKeeperError, ZooKeeperError } from "../errors.ts";
import type { CallOptions } from "../operations.ts";
import type { Holding, LastUse, LockClock, LockPlace, LockRecord, Sight } from "./grace-lock-place.ts";
import { lockClock } from "./grace-lock-place.ts";
import type { GraceLockAct, GraceLockEvent, GraceLockState, Situation } from "./grace-lock-states.ts";
import { nextStep, stateOf } from "./grace-lock-states.ts";
import { Turns } from "./grace-lock-turns.ts";
import { RunningUse, type TakenOver, type Use } from "./grace-lock-use.ts";

const defaultGraceMs = 10_000;
/** Of the grace that a cut-off owner leaves unused: two monotonic clocks differ by far less. */
const driftShare = 0.05;
/** A look that failed while a use waits to get the lock back is repeated after this. */
const retryMs = 250;
/** The end of the holding is read this often within the time that is left of it, at least every so many ms. */
const samplesPerLapse = 4;
const shortestSampleMs = 20;

export interface GraceLockOptions {
  /** Who contends: the same after a restart, and no other process's. It is how a previous owner is known. */
  readonly owner: string;
  /** Default 10,000 ms. Each contender waits for the longer of its own and the vanished holder's. */
  readonly graceMs?: number;
  /** The lock was taken over from a holder that vanished; also from this owner's former life. Before `tryLock` resolves. */
  readonly onTakenOver?: (from: TakenOver) => void;
  /** The running use has lost the lock and must stop; its signal aborts with the same error (NOT_HELD). */
  readonly onLost?: (why: ZooKeeperError) => void;
  readonly onState?: (state: GraceLockState) => void;
  readonly clock?: LockClock;
}

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
  /** As it stands at the place, while we hold it; the last one seen otherwise. */
  #record: LockRecord | undefined;
  #vacancy: { version: string; sinceMono: number } | undefined;
  #takenOver: TakenOver | undefined;
  #use: RunningUse | undefined;
  #asking = false;
  #closing = false;
  /** Nobody else can have taken it before this moment of our clock. */
  #safeUntilMono = Number.NEGATIVE_INFINITY;
  #attending = false;
  #cancelTimer: () => void = () => undefined;
  #unhear: () => void = () => undefined;

  /** @throws OPTION_INVALID */
  constructor(place: LockPlace, options: GraceLockOptions) {
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
    this.#unwatch = place.watch(() => this.#onChange());
  }

  get state(): GraceLockState {
    return stateOf(this.#situation);
  }

  /** While this process holds the lock by the clock of this moment. */
  get fence(): bigint | undefined {
    return this.#holding && this.#holding.remainingMs > 0 ? this.#holding.fence : undefined;
  }

  /** Aborts once it is closed. */
  get closed(): AbortSignal {
    return this.#turns.closed;
  }

  /**
   * Takes the lock, or uses it again where it is held already, which asks the place. Waits for a connection, and where
   * a holder vanished for the end of the grace (not if it was this owner).
   * @returns undefined when another holds it, or another caller of this process uses it
   * @throws CLOSED, ABORTED, what the place cannot do (NO_AUTH, …)
   */
  async tryLock({ signal }: CallOptions = {}): Promise<Use | undefined> {
    this.#requireOpen();
    if (this.#use || this.#asking) return undefined;
    this.#asking = true;
    try {
      for (;;) {
        this.#requireOpen();
        const seen = this.#turns.changes;
        const outcome = await this.#turns.inLine(() => this.#attempt(signal), signal);
        if (outcome === "held") return undefined;
        if (typeof outcome === "object") return outcome;
        await this.#turns.change(seen, signal, outcome);
      }
    } catch (error) {
      this.#turns.wake(); // another caller of this process may wait behind this one
      throw error;
    } finally {
      this.#asking = false;
    }
  }

  /** The same, and waits as long as another has it. */
  async lock(options: CallOptions = {}): Promise<Use> {
    for (;;) {
      const seen = this.#turns.changes;
      const use = await this.tryLock(options);
      if (use) return use;
      await this.#turns.change(seen, options.signal);
    }
  }

  /**
   * Gives the lock up for good, so that the next one need not wait. A use that still runs ends with it.
   * @returns false, and nothing is changed, when it was not held
   */
  async release(): Promise<boolean> {
    this.#requireOpen();
    return this.#release();
  }

  /** The last use as the place has it now, of whatever owner. */
  async lastUse({ signal }: CallOptions = {}): Promise<LastUse | undefined> {
    this.#requireOpen();
    // In the line: a look that is given up takes its watch along, which must not be what another one relies on.
    const { record } = await this.#turns.inLine(() => this.#place.look(this.#turns.withClose(signal)), signal);
    return record?.use ?? undefined;
  }

  /** Releases the lock if it is held, and contends no more. */
  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    try {
      await this.#release();
    } finally {
      this.#turns.close();
      this.#unwatch();
      this.#cancelTimer();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @returns the use; "held"; or how long to wait before the next attempt, ms */
  async #attempt(signal?: AbortSignal): Promise<Use | "held" | number> {
    if (this.#holding) {
      const use = await this.#begin(this.#holding, signal);
      if (use !== undefined) return use;
    }
    const sight = await this.#place.look(this.#turns.withClose(signal));
    const found = this.#find(sight);
    if (found === "held") return "held";
    if (found === "ours") return 0;
    if (sight.held) return Number.POSITIVE_INFINITY;
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

  /** Nobody waits for it any more, and an owner who does not know must not keep it. */
  #isUnwanted(signal?: AbortSignal): boolean {
    return signal?.aborted || this.#turns.closed.aborted;
  }

  /** Reads a sight: what we know now, and the state. */
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
    // A holder of our own life that is not our holding is what our last session left behind, about to go.
    const dying = sight.held && sight.record?.life === this.#life;
    const found = sight.held && !dying ? "held" : lingers ? "vacant" : "free";
    if (found !== "vacant" || dying) this.#vacancy = undefined;
    // The place answered after the holder was gone, so the vacancy is at least as old as this moment says.
    else if (this.#vacancy?.version !== sight.version) {
      this.#vacancy = { version: sight.version, sinceMono: this.#clock.monotonic() };
    }
    this.#step(`found ${found}`);
    return found;
  }

  /** For how long this contender must not take what it found vacant or free. */
  #graceLeftMs(sight: Sight): number {
    if (!this.#vacancy || this.#record?.owner === this.owner) return 0;
    const graceMs = Math.max(this.#graceMs, sight.record?.graceMs ?? 0);
    return Math.max(0, this.#vacancy.sinceMono + graceMs - this.#clock.monotonic());
  }

  async #take(sight: Sight): Promise<Holding | undefined> {
    const previous = sight.record ?? this.#record;
    const use = previous?.use ?? null;
    const record = { owner: this.owner, life: this.#life, graceMs: this.#graceMs, released: false, use };
    const holding = await this.#place.take(sight, record);
    if (!holding || holding.signal.aborted) return undefined;
    const tookOver = this.#vacancy !== undefined && previous !== undefined && previous.life !== this.#life;
    this.#hold(holding);
    this.#record = record;
    this.#vacancy = undefined;
    this.#step("took");
    this.#sample(holding);
    if (tookOver) {
      this.#takenOver = { owner: previous.owner, use: use ?? undefined };
      this.#options.onTakenOver?.(this.#takenOver);
    }
    return holding;
  }

  /** @returns undefined when it is not held any more; 0 when its caller gave up, and it was released */
  async #begin(holding: Holding, signal?: AbortSignal): Promise<Use | 0 | undefined> {
    const before = this.#record;
    const beganMs = this.#clock.wall();
    const lastUse = { owner: this.owner, fence: String(holding.fence), beganMs, endedMs: null, note: null };
    if (!(await this.#write(holding, lastUse))) return undefined;
    if (this.#isUnwanted(signal)) {
      this.#record = before; // a use that nobody was given never was
      await this.#release(true);
      return 0;
    }
    const use = new RunningUse(holding.fence, this.#takenOver, {
      held: () => this.#use === use && this.#isSafe(),
      note: (note) => this.#recordUse(use, () => ({ note })),
      end: () => this.#endUse(use),
    });
    this.#takenOver = undefined;
    this.#use = use;
    this.#step("began");
    return use;
  }

  /** @returns whether the holding stood, and stands */
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

  /** A use that was cut off takes the lock back first: work that was done must not be recorded as cut off. */
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
    const running = this.#stopUse();
    if (!this.#holding) return false;
    const work = async () => {
      // Or one that was on its way when the release was asked for, before it in the line.
      const use = this.#stopUse() ?? running;
      const [holding, record] = [this.#holding, this.#record];
      if (!holding || !record) return false;
      const ended = use && record.use ? { ...record.use, endedMs: this.#clock.wall() } : record.use;
      const released = await this.#giveUp(holding, { ...record, released: true, use: ended });
      if (this.#holding === holding) {
        this.#hold(undefined);
        this.#cancelTimer();
        if (released) this.#step("released");
      }
      return released;
    };
    try {
      return await (lined ? work() : this.#turns.inLine(work));
    } finally {
      this.#onChange();
    }
  }

  #stopUse(): RunningUse | undefined {
    const use = this.#use;
    if (!use) return undefined;
    this.#use = undefined;
    this.#step("finished");
    use.stop(this.#notHeld("has been released"));
    return use;
  }

  async #giveUp(holding: Holding, record: LockRecord): Promise<boolean> {
    try {
      return await holding.release(record);
    } catch (error) {
      // Its session ended first: the others wait for the grace, which is all that is lost.
      if (holding.signal.aborted) return false;
      throw error;
    }
  }

  #hold(holding: Holding | undefined): void {
    this.#unhear();
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
    this.#cancelTimer();
    this.#onTimer();
    this.#onChange();
  }

  #isSafe(): boolean {
    if (this.#holding) this.#believe(this.#holding);
    return this.#clock.monotonic() < this.#safeUntilMono;
  }

  /** Moves the end of what we may believe. @returns ms left of the holding */
  #believe(holding: Holding): number {
    const leftMs = holding.remainingMs;
    if (leftMs > 0) {
      this.#safeUntilMono = this.#clock.monotonic() + leftMs + this.#graceMs * (1 - driftShare);
    }
    return leftMs;
  }

  /** Believes, and looks again before the end of that comes. */
  #sample(holding: Holding): void {
    const leftMs = this.#believe(holding);
    this.#cancelTimer();
    const nextMs = leftMs > 0 ? Math.max(shortestSampleMs, leftMs / samplesPerLapse) : this.#safeLeftMs();
    this.#cancelTimer = this.#clock.after(nextMs, () => this.#onTimer());
  }

  #safeLeftMs(): number {
    return Math.max(0, this.#safeUntilMono - this.#clock.monotonic());
  }

  #onTimer(): void {
    const leftMs = this.#safeLeftMs();
    if (this.#holding && this.#holding.remainingMs > 0) this.#sample(this.#holding);
    else if (leftMs > 0) this.#cancelTimer = this.#clock.after(leftMs, () => this.#onTimer());
    else this.#step("grace over");
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

  /** Something may have changed: whoever waits looks again, and if nobody does, we do. */
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
        // A caller that tries meets the same error. A running use needs the next look; if none succeeds, the grace ends it.
        if (isZooKeeperError(error, "CLOSED") || !this.#use) return;
        this.#clock.after(retryMs, () => this.#onChange());
      });
  }

  /** Keeps the state true, and takes back for the running use what was its own. */
  async #attend(): Promise<void> {
    for (;;) {
      const sight = await this.#place.look(this.#turns.closed);
      this.#find(sight);
      if (this.#situation !== "WAITING running" || !this.#use || sight.held) return;
      const holding = await this.#take(sight);
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

function invalid(option: string, value: unknown, right: string): ZooKeeperError {
  return new ZooKeeperError("OPTION_INVALID", `the grace lock's ${option} is ${JSON.stringify(value)}`, {
    hint: `it is ${right}`,
  });
}
