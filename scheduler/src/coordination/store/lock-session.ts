import { type Clock, Sleeper } from "../../base/clock.ts";
import { isCarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { LockPulse, LockStore, SeenSession } from "../../cluster/lock-store.ts";

export interface LockSessionOptions {
  readonly store: LockStore;
  readonly clock: Clock;
  /** Returns the store's clock in epoch ms. */
  readonly nowMs: () => number;
  /** A session that sends no heartbeat for this long, in ms, is ended by another process. */
  readonly timeoutMs: number;
  readonly log: Log;
}

/**
 * Time in ms between the moment when this process stops relying on its session and the earliest moment when another process may
 * end it; at most a quarter of the timeout.
 */
const marginMs = 500;
const beatsPerTimeout = 3;
/** A failed heartbeat is retried after this many ms, or after a third of the usual interval if that is shorter. */
const hurryMs = 250;

/** This process's tokens in the queues of locks; they become invalid when the session ends. */
export interface Entries {
  /** The names whose queues contain, or may contain, tokens of this process. If empty, the session is not needed. */
  names(): string[];
  /** Receives the queues as read by a heartbeat that was sent at `beganMono`. */
  learn(pulse: LockPulse, beganMono: number): void;
}

/**
 * The heartbeat session of one process for its locks: a counter in the store that the process increments. A process that waits behind it
 * watches the counter, and ends the session by compare-and-set on the counter if it has not changed for the session's timeout, by the
 * watcher's monotonic clock, while the watcher could reach the store without interruption. This process stops relying on the session
 * earlier, because it counts from the moment when the last successful heartbeat was *sent*. An ended session is never resumed; a new one
 * replaces it.
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

  /** @param beganMono the time of the monotonic clock when the request that opened the session was sent */
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

  /** Aborts when the session has ended; the reason is a string. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** True while no other process can have ended the session. */
  get sure(): boolean {
    return !this.#end.signal.aborted && this.#options.clock.monotonic() < this.#sureUntil;
  }

  /** Sends a heartbeat soon, because the queues may have changed. */
  hurry(): void {
    this.#sleeper.wake();
  }

  /** Watches the given sessions, which hold permits that this process waits for. If one of them has ended, sends a heartbeat at once. */
  watch(sessions: readonly SeenSession[]): void {
    if (this.#see(sessions)) this.hurry();
  }

  /** Ends the session in this process for good. Its tokens count as dead once the end has been written to the store. */
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
        // A late answer does not revive the session, because a caller may already have seen that it is no longer certain.
        if (!this.sure) return this.close("the store did not answer for too long");
        this.#sureUntil = this.#trustFrom(beganMono);
        // If this process could not reach the store for more than two heartbeat intervals, the watched sessions may not have reached it
        // either, so the time of their silence is counted from zero again.
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

  /** Ends watched sessions that sent no heartbeat for their timeout. @returns true if there were any: the queues must then be read again */
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

  /** Records the heartbeat counters of other sessions. @returns true if one of these sessions no longer exists */
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

  /** True if no queue could contain tokens of this process, neither at this heartbeat nor at the one before. */
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
