import type { Pulse } from "./session-store.ts";

/**
 * The interface of coordination: which processes are alive, and which one leads. A membership is a process's session, which is renewed by
 * heartbeats. Check `trusted` before acting: it is true only while no other process can have declared this process dead. The time for which
 * it is true is measured by this machine's monotonic clock, from the moment when the last successful heartbeat was *sent*.
 */
export interface Membership {
  readonly node: string;
  /** The current session; a new number replaces it if the session was lost. */
  readonly sessionId: number;
  /** @param mono the time of this machine's monotonic clock, if the caller has just read it */
  trusted(mono?: number): boolean;
  /** Time since `trusted` became false, in ms; 0 while it is true. The grace period of claims is measured by this value. */
  doubtMs(): number;
  /** The number of the current term while this process leads and is trusted; otherwise null. */
  term(): number | null;
  /** Sends a heartbeat now instead of at the next regular time, because something has changed. */
  refresh(): void;
  /**
   * Records a member's heartbeat that a signal has reported. The member's silence is then measured from now, instead of from this process's
   * next heartbeat, whose answer would also contain the member's heartbeat.
   */
  heard(sessionId: number, beat: number): void;
  onPulse(listener: (pulse: Pulse) => void): void;
  /** Calls the listener when a new session replaces a lost one. */
  onRejoin(listener: (oldSessionId: number, newSessionId: number) => void): void;
  onLeadership(listener: (term: number | null) => void): void;
  /**
   * Resigns leadership and does not run for it again; the session continues. Resolves when the store has recorded this or is unreachable.
   */
  handOver(why: string): Promise<void>;
  /**
   * Hands leadership over and ends the session.
   * @param abandoned aborts when the caller no longer waits; the caller has then logged the reason
   */
  leave(why: string, abandoned?: AbortSignal): Promise<void>;
}
