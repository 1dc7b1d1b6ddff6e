import type { Pulse } from "./session-store.ts";

/**
 * The port of coordination: which processes are alive, and which one leads. A membership is a session and all that depends on it.
 * Check `trusted` before acting: it is true only while no other process may have declared this one dead. Its time window is measured
 * on this machine's monotonic clock, from the moment the last proof of life *began*.
 */
export interface Membership {
  readonly node: string;
  /** The number of the present session; it changes when the session was lost and a new one was opened. */
  readonly sessionId: number;
  /** @param mono the current time, if the caller has just read this machine's monotonic clock */
  trusted(mono?: number): boolean;
  /** Milliseconds since trust ended; 0 while trusted. A claim's grace period is measured with it. */
  doubtMs(): number;
  /** The term while this process leads and is trusted, else null. */
  term(): number | null;
  /** Requests a pulse now, because something changed. */
  refresh(): void;
  /**
   * Called when a signal brought a member's heartbeat: its silence counts from now, not from the next pulse that would show the heartbeat.
   */
  heard(sessionId: number, beat: number): void;
  onPulse(listener: (pulse: Pulse) => void): void;
  /** Calls the listener when a new session replaces a lost one. */
  onRejoin(listener: (oldSessionId: number, newSessionId: number) => void): void;
  onLeadership(listener: (term: number | null) => void): void;
  /** Resigns leadership for good; the session goes on. Resolves when the store has recorded it, or could not be reached. */
  handOver(why: string): Promise<void>;
  /** Hands leadership over and ends the session. @param abandoned aborts when the caller, which has logged the reason, stops waiting */
  leave(why: string, abandoned?: AbortSignal): Promise<void>;
}
