import type { Pulse } from "./session-store.ts";

/**
 * The port of coordination: who is alive, and who leads. A membership is a session with everything that hangs from it.
 * `trusted` is the one question to ask before acting: it is true only while nobody else may have taken this process
 * for dead, by a window measured on this machine's monotonic clock from the moment the last proof of life *began*.
 */
export interface Membership {
  readonly node: string;
  /** Changes when the session was lost and a new one opened. */
  readonly sessionId: number;
  /** @param mono now, for who has just read this machine's monotonic clock */
  trusted(mono?: number): boolean;
  /** Milliseconds since trust ended; 0 while trusted. What a claim's grace is measured with. */
  doubtMs(): number;
  /** The term while this process leads and is trusted, else null. */
  term(): number | null;
  /** Asks for a pulse now: something changed. */
  refresh(): void;
  /** A member's beat, told by a signal: its silence counts from here, not from the next pulse that would show it. */
  heard(sessionId: number, beat: number): void;
  onPulse(listener: (pulse: Pulse) => void): void;
  /** A new session took the place of a lost one. */
  onRejoin(listener: (oldSessionId: number, newSessionId: number) => void): void;
  onLeadership(listener: (term: number | null) => void): void;
  /** Lays leadership down and takes it no more; the session goes on. Resolves when the store has been told, or could not be. */
  handOver(why: string): Promise<void>;
  /** Hands leadership over, ends the session. @param abandoned aborts when the caller, who has told why, waits for it no more */
  leave(why: string, abandoned?: AbortSignal): Promise<void>;
}
