import { type Clock, Sleeper } from "../../base/clock.ts";
import { isCarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { LockPulse, LockStore, SeenSession } from "../../cluster/lock-store.ts";

export interface LockSessionOptions {
  readonly store: LockStore;
  readonly clock: Clock;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  /** For how long a process may be silent, ms. */
  readonly timeoutMs: number;
  readonly log: Log;
}

/** Safety between the moment when this process stops relying on its session and the earliest moment at which another process may end it. */
const marginMs = 500;
const beatsPerTimeout = 3;
/** A beat that failed is tried again after this many ms, or after a third of the usual interval if that is shorter. */
const hurryMs = 250;

/** A process's entries in lines, which end with its session. */
export interface Entries {
  /** The names whose lines contain, or may contain, entries of this process. Empty: the session is not needed. */
  names(): string[];
  /** Receives the lines as read by a beat that began at `beganMono`. @returns tokens to take out, by name */
  learn(pulse: LockPulse, beganMono: number): void;
}

/**
 * One process's liveness for its locks: a counter in the store that it increments. A process that waits behind it watches the counter, and
 * ends the session by compare-and-set on the counter when it stood still for the session's timeout by the watcher's own monotonic clock,
 * during which the watcher never lost sight of the store. Trust ends before that, because it is counted from the moment when the last
 * successful beat *began*. A session that has ended, in this process or in the store, never comes back; a new session replaces it.
 */
export class LockSession {
  readonly id: number;
  readonly #options: LockSessionOptions;
  readonly #entries: Entries;
  readonly #end = new AbortController();
  readonly #silence = new Map<number, { beat: number; sinceMono: number }>();
  #sureUntil: number;
  #sawStoreMono: number;
  #silentLeftMs = Number.POSITIVE_INFINITY;
  #idle = false;
  readonly #sleeper: Sleeper;
  #cancelTrust: () => void = () => undefined;

  /** @param beganMono when the request that opened it was sent */
  constructor(options: LockSessionOptions, entries: Entries, id: number, beganMono: number) {
    this.#options = options;
    this.#sleeper = new Sleeper(options.clock);
    this.#entries = entries;
    this.id = id;
    this.#sureUntil = this.#trustFrom(beganMono);
    this.#sawStoreMono = beganMono;
    this.#watchTrust();
    void this.#beat();
  }

  /** Aborts when the session is over; the reason is a string. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** True if no other process can have ended the session at this moment. */
  get sure(): boolean {
    return !this.#end.signal.aborted && this.#options.clock.monotonic() < this.#sureUntil;
  }

  /** Beats soon, because the lines may have changed. */
  hurry(): void {
    this.#sleeper.wake();
  }

  /** Watches the sessions that block this one, as just read. If one of them is gone, the next beat comes at once. */
  watch(sessions: readonly SeenSession[]): void {
    if (this.#see(sessions)) this.hurry();
  }

  /** Ends the session for good; its entries in lines have no owner once the store has recorded the end. */
  close(why: string): void {
    this.#cancelTrust();
    if (!this.#end.signal.aborted) this.#end.abort(why);
    this.#sleeper.wake();
  }

  #trustFrom(beganMono: number): number {
    const { timeoutMs } = this.#options;
    return beganMono + timeoutMs - Math.min(marginMs, timeoutMs / 4);
  }

  async #beat(): Promise<void> {
    const { store, clock, nowMs, timeoutMs, log } = this.#options;
    const usualMs = timeoutMs / beatsPerTimeout;
    const hurriedMs = Math.min(hurryMs, usualMs / 3);
    let failing = false;
    for (;;) {
      await this.#sleeper.sleep(failing ? hurriedMs : Math.min(usualMs, this.#silentLeftMs));
      if (this.#end.signal.aborted) return;
      const names = this.#entries.names();
      if (this.#isIdle(names)) return this.close("it is not needed any more");
      const beganMono = clock.monotonic();
      try {
        const pulse = await store.beat(this.id, names, nowMs());
        if (!pulse.alive) return this.close("this process was silent for too long, and others took it for dead");
        // An answer after the end of the trust does not revive the session, because a caller that looked may have seen it end.
        if (!this.sure) return this.close("the store did not answer for too long");
        this.#sureUntil = this.#trustFrom(beganMono);
        // After an interruption longer than two beats, silences are counted anew: a session that stood still may have been cut off from the
        // store, as this one was.
        if (clock.monotonic() - this.#sawStoreMono > 2 * usualMs + marginMs) this.#silence.clear();
        this.#sawStoreMono = clock.monotonic();
        if (await this.#bury(pulse)) this.#sleeper.wake();
        this.#entries.learn(pulse, beganMono);
        failing = false;
      } catch (error) {
        if (!isCarillonError(error)) log.error({ error: messageOf(error) }, "a beat of this process's locks failed");
        else if (!failing) log.warn({ code: error.code, error: messageOf(error) }, "locks are sure only for a while");
        failing = true;
      }
    }
  }

  /** Ends the sessions whose timeout is over. @returns true if there were any: then the lines must be read again */
  async #bury(pulse: LockPulse): Promise<boolean> {
    this.#see(pulse.sessions);
    let buried = false;
    const there = new Set(pulse.sessions.map(({ session }) => session));
    this.#silentLeftMs = Number.POSITIVE_INFINITY;
    for (const [session, { beat, sinceMono }] of this.#silence) {
      const timeoutMs = pulse.sessions.find((one) => one.session === session)?.timeoutMs ?? 0;
      const leftMs = sinceMono + timeoutMs - this.#options.clock.monotonic();
      if (!there.has(session)) this.#silence.delete(session);
      else if (leftMs > 0) this.#silentLeftMs = Math.min(this.#silentLeftMs, leftMs + 1);
      else {
        await this.#options.store.end(session, beat);
        this.#silence.delete(session);
        this.#options.log.warn({ session }, "a process that used locks was silent for too long: its locks go on");
        buried = true;
      }
    }
    return buried;
  }

  /** @returns whether one of these sessions has ended */
  #see(sessions: readonly SeenSession[]): boolean {
    let gone = false;
    for (const { session, beat } of sessions) {
      if (session === this.id) continue;
      if (beat === null) {
        gone = true;
        this.#silence.delete(session);
      } else if (this.#silence.get(session)?.beat !== beat) {
        this.#silence.set(session, { beat, sinceMono: this.#options.clock.monotonic() });
      }
    }
    return gone;
  }

  /** @returns true if this process had no names at this beat and at the one before */
  #isIdle(names: readonly string[]): boolean {
    const wasIdle = this.#idle;
    this.#idle = names.length === 0;
    return wasIdle && this.#idle;
  }

  #watchTrust(): void {
    const { clock } = this.#options;
    this.#cancelTrust = clock.after(this.#sureUntil - clock.monotonic(), () => {
      if (this.sure) this.#watchTrust();
      else this.close("the store did not answer for too long");
    });
  }
}
