import { GraceLock, type GraceLockOptions, type LockRecord } from "@carillon/zookeeper";
import { pause } from "../clock.ts";
import { CarillonError, isCarillonError, messageOf } from "../errors.ts";
import type { LockPulse } from "../lock-store.ts";
import { type Held, type LockPlace, type PermitSpec, type Permits, sizeDiffers, whileWaiting } from "../locks.ts";
import type { Signal, SignalStore, Store } from "../store.ts";
import { GraceLockRow } from "./grace-lock.ts";
import { HeldLock } from "./held-lock.ts";
import { LockSession, type LockSessionOptions } from "./store-lock-session.ts";

export interface StoreLocksOptions extends Omit<LockSessionOptions, "store"> {
  readonly store: Pick<Store, "locks" | "graceLocks" | "signals">;
  /** The higher half of every fence. */
  readonly era: number;
}

/** After a statement that failed, while someone waits. */
const retryMs = 250;
/** Names used since rows were last forgotten. */
const rememberedNames = 1_000;

type Outcome = "granted" | "again";

/** One place in a line: of one that waits, or of one that holds. */
interface Place {
  readonly name: string;
  readonly token: string;
  readonly session: LockSession;
  /** Since when the store has told that it is in line. */
  enteredMono: number;
  granted: boolean;
  settle: (outcome: Outcome) => void;
  held: HeldLock | undefined;
}

/**
 * Locks in the store: a line for each name, whose first so many hold. Getting in line is one statement and leaving it
 * another, which tells the one who holds now instead, so one release wakes one that waits; and a fence is drawn in the
 * line's order. Beats make up for what was not heard. States and events: docs/locks.md.
 */
export class StoreLocks implements LockPlace {
  readonly title = "the store";
  readonly #options: StoreLocksOptions;
  readonly #places = new Map<string, Place>();
  /** Names in whose lines there may be a place of ours that nobody knows of, and until when to look. */
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
    await Promise.all([...this.#places.values()].map(({ held }) => held?.release()));
    await Promise.allSettled([this.#opening]);
    this.#session?.close("it was stopped");
    await Promise.all([...this.#ending, this.#heard]);
  }

  async #wait(spec: PermitSpec, signal: AbortSignal): Promise<Held> {
    const { clock, log } = this.#options;
    let place: Place | undefined;
    let told = false;
    for (;;) {
      try {
        signal.throwIfAborted();
        place ??= this.#placeOf(spec, await whileWaiting(this.#alive(), signal));
        const held = await this.#enter(spec, place, signal);
        if (held) return held;
        place = undefined; // the session is over, and its places with it
      } catch (error) {
        const isAway = isCarillonError(error, "STORE_UNREACHABLE") && !signal.aborted;
        if (!isAway && place) this.#giveUp(place);
        if (!isAway) throw error;
        if (!told) log.warn({ lock: spec.name, error: messageOf(error) }, "waiting for a lock until the store is back");
        told = true;
        // With the same token: should the statement have been done, it is in line already.
        if (place?.session.sure === false) {
          this.#places.delete(place.token);
          place = undefined;
        }
        await pause(clock, retryMs, signal);
      }
    }
  }

  /** Gets in line, and waits there. @returns undefined: the session ended */
  async #enter(spec: PermitSpec, place: Place, signal: AbortSignal): Promise<Held | undefined> {
    const { clock, store, era, nowMs } = this.#options;
    const outcome = new Promise<Outcome>((resolve) => {
      place.settle = resolve;
    });
    const { name, token, session } = place;
    const entry = { name, token, permits: spec.permits, wait: true, era, nowMs: nowMs() };
    const taken = await whileWaiting(store.locks.enter(entry), signal);
    if (taken.permits !== spec.permits) throw sizeDiffers(spec, taken.permits);
    if (taken.place === null) {
      throw new CarillonError("LOCK_BUSY", `too many wait for ${spec.name} already`, {
        hint: "Use more names, or fewer that wait at once.",
      });
    }
    place.enteredMono = clock.monotonic();
    if (taken.place > taken.permits && !place.granted) {
      session.watch(taken.holders);
      this.#listen();
      if (session.sure && (await whileWaiting(outcome, signal)) === "again") return undefined;
    }
    return this.#hold(spec, place, BigInt(taken.fence ?? 0));
  }

  #hold(spec: PermitSpec, place: Place, fence: bigint): Held | undefined {
    const { session, token } = place;
    if (!session.sure) {
      this.#places.delete(token);
      return undefined;
    }
    place.held = new HeldLock(spec.name, `the ${spec.kind} ${spec.name}`, fence, {
      sure: () => session.sure,
      letGo: () => this.#leave(place),
    });
    return place.held;
  }

  async #try(spec: PermitSpec, signal: AbortSignal): Promise<Held | undefined> {
    const { store, era, nowMs, timeoutMs, clock } = this.#options;
    signal.throwIfAborted();
    const place = this.#placeOf(spec, await whileWaiting(this.#alive(), signal));
    const { name, token } = place;
    try {
      const entry = { name, token, permits: spec.permits, wait: false, era, nowMs: nowMs() };
      const taken = await whileWaiting(store.locks.enter(entry), signal);
      if (taken.permits !== spec.permits) throw sizeDiffers(spec, taken.permits);
      place.enteredMono = clock.monotonic();
      if (taken.place !== null) return this.#hold(spec, place, BigInt(taken.fence ?? 0));
      this.#places.delete(token);
      // The hint costs no more than waiting for nothing, once: whether a holder is dead, its beat decides.
      if (!taken.holders.some((one) => one.beat === null || one.silentMs >= one.timeoutMs)) return undefined;
    } catch (error) {
      this.#giveUp(place);
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

  #placeOf({ kind, name }: PermitSpec, session: LockSession): Place {
    const token = `${session.id}.${++this.#count}`;
    const enteredMono = Number.POSITIVE_INFINITY;
    const settle = () => undefined;
    const key = `${kind}:${name}`;
    const place: Place = { name: key, token, session, enteredMono, granted: false, settle, held: undefined };
    this.#places.set(token, place);
    this.#used.add(key);
    if (this.#used.size > rememberedNames)
      this.#forget().catch((error) =>
        this.#options.log.debug({ error: messageOf(error) }, "names are forgotten later"),
      );
    return place;
  }

  /** The rows of names that nobody uses any more. */
  async #forget(): Promise<void> {
    const present = new Set(this.#names());
    const names = [...this.#used].filter((name) => !present.has(name));
    if (names.length > 0) await this.#options.store.locks.forget(names);
    for (const name of names) this.#used.delete(name);
  }

  /** Nobody waits for it any more, and whether it came to be is not known. */
  #giveUp(place: Place): void {
    void this.#leave(place);
  }

  async #leave(place: Place): Promise<boolean> {
    const { clock, store, log, timeoutMs } = this.#options;
    this.#places.delete(place.token);
    // It counts for dead already, and a token of it is nobody's.
    if (place.session.signal.aborted) return false;
    // A statement that was given up may be done later, after this one: then a beat finds what it left.
    if (place.enteredMono === Number.POSITIVE_INFINITY)
      this.#doubtful.set(place.name, clock.monotonic() + 2 * timeoutMs);
    try {
      return await store.locks.leave(place.name, place.token);
    } catch (error) {
      log.warn({ lock: place.name, error: messageOf(error) }, "a lock was given up, and the store not told yet");
      this.#doubtful.set(place.name, clock.monotonic() + 2 * timeoutMs);
      place.session.hurry();
      return false;
    }
  }

  /** The session that is sure, or a new one. */
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
    const places = {
      names: () => this.#names(),
      learn: (pulse: LockPulse, began: number) => this.#learn(session, pulse, began),
    };
    const session = new LockSession({ clock, nowMs, timeoutMs, log, store: store.locks }, places, id, beganMono);
    if (this.#closing.signal.aborted) session.close("it was stopped");
    this.#session = session;
    const onEnd = () => this.#onEnd(session);
    if (session.signal.aborted) onEnd();
    else session.signal.addEventListener("abort", onEnd, { once: true });
    return session;
  }

  #onEnd(session: LockSession): void {
    if (this.#session === session) this.#session = undefined;
    for (const place of [...this.#places.values()].filter((one) => one.session === session)) {
      this.#places.delete(place.token);
      place.held?.lose(String(session.signal.reason));
      place.settle("again");
    }
    const ending = this.#bury(session).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  /** What it left in lines counts for dead from then on. Others find out by its silence otherwise. */
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
    return [...new Set([...[...this.#places.values()].map(({ name }) => name), ...this.#doubtful.keys()])];
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
        if (sessionOf(token) === `${session.id}` && !this.#places.has(token))
          store.locks.leave(name, token).catch(late);
    }
    for (const place of [...this.#places.values()]) {
      if (place.session !== session || place.enteredMono > beganMono) continue;
      const its = lines.find(({ name }) => name === place.name);
      const index = its?.line.indexOf(place.token) ?? -1;
      if (index >= 0 && index < (its?.permits ?? 0)) this.#grant(place);
      if (index >= 0) continue;
      // Somebody took it out of the line, by hand.
      this.#places.delete(place.token);
      place.held?.lose("somebody took it away in the store");
      place.settle("again");
    }
  }

  #grant(place: Place): void {
    place.granted = true;
    place.settle("granted");
  }

  #listen(): void {
    const { signals } = this.#options.store as { signals: SignalStore };
    this.#heard ??= signals.listen((signal: Signal) => {
      if (signal.kind === "resync") this.#session?.hurry();
      if (signal.kind !== "lock") return;
      const place = this.#places.get(signal.token);
      if (place) this.#grant(place);
    }, this.#closing.signal);
  }
}
