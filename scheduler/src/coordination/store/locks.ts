import { GraceLock, type GraceLockOptions, type LockRecord } from "@carillon/zookeeper";
import { pause } from "../../base/clock.ts";
import { CarillonError, isStoreAway, messageOf } from "../../base/errors.ts";
import type { LockPulse } from "../../cluster/lock-store.ts";
import {
  type Held,
  type LockPlace,
  type PermitSpec,
  type Permits,
  sizeDiffers,
  whileWaiting,
} from "../../cluster/locks.ts";
import type { Signal } from "../../cluster/signal-store.ts";
import type { Store } from "../../store/store.ts";
import { GraceLockRow } from "../grace-lock.ts";
import { HeldLock } from "../held-lock.ts";
import { LockSession, type LockSessionOptions } from "./lock-session.ts";

export interface StoreLocksOptions extends Omit<LockSessionOptions, "store"> {
  readonly store: Pick<Store, "locks" | "graceLocks" | "signals">;
  /** The upper 32 bits of every fence. */
  readonly era: number;
}

/** The pause in ms before a failed statement is repeated. */
const retryMs = 250;
/** When more than this many names have been used, the rows of unused names are deleted. */
const rememberedNames = 1_000;

type Outcome = "granted" | "again";

/** A token in a queue, which waits for a permit or holds one. */
interface Entry {
  readonly name: string;
  readonly token: string;
  readonly session: LockSession;
  /** When the store first confirmed that the token is in the queue, by the monotonic clock; Infinity before. */
  enteredMono: number;
  granted: boolean;
  settle: (outcome: Outcome) => void;
  held: HeldLock | undefined;
}

/**
 * Locks in the store. Each name has a queue of tokens; the first `permits` tokens of the queue hold the permits. One statement appends a
 * token; another removes it and notifies the token that gets the permit, so one release wakes one process. Fences increase along the queue.
 * If a notification is lost, the next heartbeat reads the queue. States and events: docs/coordination/locks.md.
 */
export class StoreLocks implements LockPlace {
  readonly title = "the store";
  readonly #options: StoreLocksOptions;
  readonly #entries = new Map<string, Entry>();
  /** Names whose queues may contain a token that no call waits for, each with the time until which heartbeats look for such a token. */
  readonly #doubtful = new Map<string, number>();
  readonly #used = new Set<string>();
  readonly #closing = new AbortController();
  #session: LockSession | undefined;
  #opening: Promise<LockSession> | undefined;
  readonly #ending = new Set<Promise<void>>();
  #heard: Promise<void> | undefined;
  #count = 0;

  constructor(options: StoreLocksOptions) {
    this.#options = options;
  }

  permits(spec: PermitSpec): Permits {
    return { acquire: (wait, signal) => (wait ? this.#wait(spec, signal) : this.#try(spec, signal)) };
  }

  graceLock(name: string, options: GraceLockOptions): GraceLock {
    const { timeoutMs, clock, store } = this.#options;
    const times = { timeoutMs, beatMs: timeoutMs / 3, pollMs: Math.min(1_000, timeoutMs / 3), clock };
    return new GraceLock(new GraceLockRow<LockRecord>(store.graceLocks, name, times), { clock, ...options });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#entries.values()].map(({ held }) => held?.release()));
    await Promise.allSettled([this.#opening]);
    this.#session?.close("it was stopped");
    await Promise.all([...this.#ending, this.#heard]);
  }

  async #wait(spec: PermitSpec, signal: AbortSignal): Promise<Held> {
    const { clock, log } = this.#options;
    let entry: Entry | undefined;
    let told = false;
    for (;;) {
      try {
        signal.throwIfAborted();
        entry ??= this.#entryFor(spec, await whileWaiting(this.#alive(), signal));
        const held = await this.#enter(spec, entry, signal);
        if (held) return held;
        entry = undefined; // the session has ended, so its tokens are invalid
      } catch (error) {
        const isAway = isStoreAway(error) && !signal.aborted;
        if (!isAway && entry) this.#giveUp(entry);
        if (!isAway) throw error;
        if (!told) log.warn({ lock: spec.name, error: messageOf(error) }, "waiting for a lock until the store is back");
        told = true;
        // The retry uses the same token, so a statement that was executed although its answer was lost is not repeated.
        if (entry?.session.sure === false) {
          this.#entries.delete(entry.token);
          entry = undefined;
        }
        await pause(clock, retryMs, signal);
      }
    }
  }

  /**
   * Appends the token to the queue, and waits for a permit.
   * @returns undefined if the session ended, or if the token was deleted from the queue
   * @throws LOCK_SIZE_DIFFERS; LOCK_BUSY if too many tokens wait; STORE_…; the signal's reason
   */
  async #enter(spec: PermitSpec, entry: Entry, signal: AbortSignal): Promise<Held | undefined> {
    const { clock, store, era, nowMs } = this.#options;
    const outcome = new Promise<Outcome>((resolve) => {
      entry.settle = resolve;
    });
    const { name, token, session } = entry;
    const asked = { name, token, permits: spec.permits, wait: true, era, nowMs: nowMs() };
    const standing = await whileWaiting(store.locks.enter(asked), signal);
    if (standing.permits !== spec.permits) throw sizeDiffers(spec, standing.permits);
    if (standing.rank === null) {
      throw new CarillonError("LOCK_BUSY", `too many wait for ${spec.name} already`, {
        hint: "Use more names, or fewer that wait at once.",
      });
    }
    entry.enteredMono = clock.monotonic();
    if (standing.rank > standing.permits && !entry.granted) {
      session.watch(standing.holders);
      this.#listen();
      if (session.sure && (await whileWaiting(outcome, signal)) === "again") return undefined;
    }
    return this.#hold(spec, entry, BigInt(standing.fence ?? 0));
  }

  #hold(spec: PermitSpec, entry: Entry, fence: bigint): Held | undefined {
    const { session, token } = entry;
    if (!session.sure) {
      this.#entries.delete(token);
      return undefined;
    }
    entry.held = new HeldLock(spec.name, `the ${spec.kind} ${spec.name}`, fence, {
      sure: () => session.sure,
      letGo: () => this.#leave(entry),
    });
    return entry.held;
  }

  async #try(spec: PermitSpec, signal: AbortSignal): Promise<Held | undefined> {
    const { store, era, nowMs, timeoutMs, clock } = this.#options;
    signal.throwIfAborted();
    const entry = this.#entryFor(spec, await whileWaiting(this.#alive(), signal));
    const { name, token } = entry;
    try {
      const asked = { name, token, permits: spec.permits, wait: false, era, nowMs: nowMs() };
      const standing = await whileWaiting(store.locks.enter(asked), signal);
      if (standing.permits !== spec.permits) throw sizeDiffers(spec, standing.permits);
      entry.enteredMono = clock.monotonic();
      if (standing.rank !== null) return this.#hold(spec, entry, BigInt(standing.fence ?? 0));
      this.#entries.delete(token);
      // `silentMs` is only a hint. If it suggests that a holder is dead, this call waits so that the holder's heartbeats can be watched.
      if (!standing.holders.some((one) => one.beat === null || one.silentMs >= one.timeoutMs)) return undefined;
    } catch (error) {
      this.#giveUp(entry);
      throw error;
    }
    const over = new AbortController();
    const cancel = clock.after(1.5 * timeoutMs, () => over.abort());
    try {
      return await this.#wait(spec, AbortSignal.any([signal, over.signal]));
    } catch (error) {
      if (over.signal.aborted && !signal.aborted) return undefined;
      throw error;
    } finally {
      cancel();
    }
  }

  #entryFor({ kind, name }: PermitSpec, session: LockSession): Entry {
    const token = `${session.id}.${++this.#count}`;
    const enteredMono = Number.POSITIVE_INFINITY;
    const settle = () => undefined;
    const key = `${kind}:${name}`;
    const entry: Entry = { name: key, token, session, enteredMono, granted: false, settle, held: undefined };
    this.#entries.set(token, entry);
    this.#used.add(key);
    if (this.#used.size > rememberedNames)
      this.#forget().catch((error) =>
        this.#options.log.debug({ error: messageOf(error) }, "names are forgotten later"),
      );
    return entry;
  }

  /** Deletes the rows of names that this process no longer uses. */
  async #forget(): Promise<void> {
    const present = new Set(this.#names());
    const names = [...this.#used].filter((name) => !present.has(name));
    if (names.length > 0) await this.#options.store.locks.forget(names);
    for (const name of names) this.#used.delete(name);
  }

  /** Removes a token that no caller waits for and that may not be in the queue; does not wait for the result. */
  #giveUp(entry: Entry): void {
    void this.#leave(entry);
  }

  async #leave(entry: Entry): Promise<boolean> {
    const { clock, store, log, timeoutMs } = this.#options;
    this.#entries.delete(entry.token);
    // Tokens of an ended session are invalid anyway.
    if (entry.session.signal.aborted) return false;
    // The statement that appends the token may still be executed after the removal below; then a later heartbeat finds the token and
    // removes it.
    if (entry.enteredMono === Number.POSITIVE_INFINITY)
      this.#doubtful.set(entry.name, clock.monotonic() + 2 * timeoutMs);
    try {
      return await store.locks.leave(entry.name, entry.token);
    } catch (error) {
      log.warn({ lock: entry.name, error: messageOf(error) }, "a lock was given up, and the store not told yet");
      this.#doubtful.set(entry.name, clock.monotonic() + 2 * timeoutMs);
      entry.session.hurry();
      return false;
    }
  }

  /** Returns the current session if it is certainly alive, otherwise opens a new one. */
  #alive(): Promise<LockSession> {
    if (this.#session?.sure) return Promise.resolve(this.#session);
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<LockSession> {
    const { clock, nowMs, timeoutMs, log, store } = this.#options;
    this.#session?.close("its trust is over");
    const beganMono = clock.monotonic();
    const id = await store.locks.open(timeoutMs, nowMs());
    const entries = {
      names: () => this.#names(),
      learn: (pulse: LockPulse, began: number) => this.#learn(session, pulse, began),
    };
    const session = new LockSession({ clock, nowMs, timeoutMs, log, store: store.locks }, entries, id, beganMono);
    if (this.#closing.signal.aborted) session.close("it was stopped");
    this.#session = session;
    const onEnd = () => this.#onEnd(session);
    if (session.signal.aborted) onEnd();
    else session.signal.addEventListener("abort", onEnd, { once: true });
    return session;
  }

  #onEnd(session: LockSession): void {
    if (this.#session === session) this.#session = undefined;
    for (const entry of [...this.#entries.values()].filter((one) => one.session === session)) {
      this.#entries.delete(entry.token);
      entry.held?.lose(String(session.signal.reason));
      entry.settle("again");
    }
    const ending = this.#bury(session).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  /**
   * Ends the session in the store, so that its tokens count as dead at once. Otherwise other processes would notice the end only after the
   * session's timeout.
   */
  async #bury(session: LockSession): Promise<void> {
    const { store, clock, log, timeoutMs } = this.#options;
    const ends = clock.monotonic() + 10 * timeoutMs;
    for (;;) {
      try {
        await store.locks.end(session.id, null);
        return await this.#forget();
      } catch (error) {
        if (this.#closing.signal.aborted || clock.monotonic() > ends) {
          log.warn({ error: messageOf(error) }, "the store was not told that locks were given up; they lapse");
          return;
        }
        await pause(clock, retryMs, this.#closing.signal);
      }
    }
  }

  #names(): string[] {
    const mono = this.#options.clock.monotonic();
    for (const [name, until] of this.#doubtful) if (until < mono) this.#doubtful.delete(name);
    return [...new Set([...[...this.#entries.values()].map(({ name }) => name), ...this.#doubtful.keys()])];
  }

  #learn(session: LockSession, { lines, sessions }: LockPulse, beganMono: number): void {
    const { store } = this.#options;
    const gone = new Set(sessions.filter(({ beat }) => beat === null).map((one) => `${one.session}`));
    const sessionOf = (token: string) => token.slice(0, token.indexOf("."));
    const late = (error: unknown) => this.#options.log.debug({ error: messageOf(error) }, "the next beat tries again");
    for (const { name, line } of lines) {
      const dead = line.filter((token) => gone.has(sessionOf(token)));
      if (dead.length > 0) store.locks.evict(name, dead).catch(late);
      for (const token of line)
        if (sessionOf(token) === `${session.id}` && !this.#entries.has(token))
          store.locks.leave(name, token).catch(late);
    }
    for (const entry of [...this.#entries.values()]) {
      if (entry.session !== session || entry.enteredMono > beganMono) continue;
      const its = lines.find(({ name }) => name === entry.name);
      const index = its?.line.indexOf(entry.token) ?? -1;
      if (index >= 0 && index < (its?.permits ?? 0)) this.#grant(entry);
      if (index >= 0) continue;
      // The token has been deleted from the queue by another program or by hand.
      this.#entries.delete(entry.token);
      entry.held?.lose("somebody took it away in the store");
      entry.settle("again");
    }
  }

  #grant(entry: Entry): void {
    entry.granted = true;
    entry.settle("granted");
  }

  #listen(): void {
    this.#heard ??= this.#options.store.signals.listen((signal: Signal) => {
      if (signal.kind === "resync") this.#session?.hurry();
      if (signal.kind !== "lock") return;
      const entry = this.#entries.get(signal.token);
      if (entry) this.#grant(entry);
    }, this.#closing.signal);
  }
}
