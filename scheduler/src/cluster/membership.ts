import type { Pulse } from "./session-store.ts";

/**
 * The port of coordination: which processes are alive, and which one leads. A membership is a session and all that depends on it.
 * Check `trusted` before acting: it is true only while no other process may have declared this one dead. Its time window is measured
 * on this machine's monotonic clock, from the moment the last proof of life *began*.
 */
export interface Membership {
  readonly node: string;
  /** Changes when the session was lost and a new one was opened. */
  readonly sessionId: number;
  /** @param mono the current time, if the caller has just read this machine's monotonic clock */
  trusted(mono?: number): boolean;
  /** Milliseconds since trust ended; 0 while trusted. A claim's grace period is measured with it. */
  doubtMs(): number;
  /** The term while this process leads and is trusted, else null. */
  term(): number | null;
  /** Requests a pulse now, because something changed. */
  refresh(): void;
  /** A member's heartbeat, received by a signal: its silence counts from here, not from the next pulse that would show the heartbeat. */
  heard(sessionId: number, beat: number): void;
  onPulse(listener: (pulse: Pulse) => void): void;
  /** A new session took the place of a lost one. */
  onRejoin(listener: (oldSessionId: number, newSessionId: number) => void): void;
  onLeadership(listener: (term: number | null) => void): void;
  /**
   * Resigns leadership and does not take it again; the session goes on. Resolves when the store has recorded it, or could not be reached.
   */
  handOver(why: string): Promise<void>;
  /** Hands leadership over, ends the session. @param abandoned aborts when the caller, who has logged why, stops waiting for this */
  leave(why: string, abandoned?: AbortSignal): Promise<void>;
}
