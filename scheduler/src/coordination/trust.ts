import type { Witness } from "../cluster/witness.ts";

/**
 * Until when nobody else may have taken this process for dead, by its own monotonic clock. Others judge a session by
 * what its row in the store says it relies on: `store` (its heartbeat's counter stands still for the timeout) or
 * `witness` (a coordination service does not show it any more). While a change from one to the other is under way, or its
 * reply was lost, either may be what they read, so both must hold.
 *
 * Where there was a gap in what the witness shows, such as a process that was stopped for longer than its timeout, the
 * session may have been ended in it: being shown again proves nothing until a heartbeat finds it alive.
 */
export type Backing = "store" | "witness";

/** Safety between the end of trust here and the earliest moment another may act. */
export const marginMs = 500;

export class Trust {
  readonly #windowMs: number;
  /** What others read: known, or one of both. */
  #backing: Backing | "either" = "store";
  #storeUntil = 0;
  /** As far as the witness showed it without a gap. */
  #shownUntil = 0;
  /** When the last beat began that found the session alive; or that is to tell of the witness, and finds it so if it is applied. */
  #aliveAt = 0;
  /** By the store's last answer, whatever the session relies on: a leader needs it. */
  #heardUntil = 0;

  /** @param windowMs the session's timeout less a margin: how long a heartbeat counts, from when it began */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  until(witness: Pick<Witness, "shownUntil" | "shownSince"> | undefined, mono: number): number {
    if (this.#backing === "store" || !witness) return this.#storeUntil;
    const until = this.#isShown(witness) ? witness.shownUntil() : Math.min(this.#shownUntil, mono);
    this.#shownUntil = until;
    return this.#backing === "witness" ? until : Math.min(until, this.#storeUntil);
  }

  /** Without a gap since the session was known to live. */
  #isShown(witness: Pick<Witness, "shownUntil" | "shownSince">): boolean {
    return witness.shownUntil() > 0 && witness.shownSince() <= this.#aliveAt;
  }

  /** What the last beat that was applied says to the others; "either": they may read another. */
  get told(): Backing | "either" {
    return this.#backing;
  }

  heardUntil(): number {
    return this.#heardUntil;
  }

  /** A beat that says `backing` is about to be sent. */
  beating(backing: Backing, beganMono: number): void {
    if (backing === this.#backing) return;
    // Should it be applied and its reply lost, others count its silence from here on, not from an earlier beat.
    if (this.#backing === "witness") this.#storeUntil = beganMono + this.#windowMs;
    // Applied, it finds the session alive after this: whoever reads it then goes by what is shown since.
    else if (this.#backing === "store") this.#aliveAt = beganMono;
    this.#backing = "either";
  }

  /** It was applied. */
  beaten(backing: Backing, beganMono: number): void {
    this.#backing = backing;
    this.#aliveAt = beganMono;
    this.#storeUntil = this.#heardUntil = beganMono + this.#windowMs;
  }

  /**
   * A stand-in said that the session relies on the store. @param untilMono until when it is sure by the last of its proofs of life that was
   * answered; 0: none was, and others may read either
   */
  stoodIn(untilMono: number): void {
    if (untilMono > 0) this.beaten("store", untilMono - this.#windowMs);
    else if (this.#backing !== "store") this.#backing = "either";
  }

  /** The session is over: whoever ended it may act already, however young the last proof of life is. */
  over(mono: number): void {
    this.#backing = "store";
    this.#storeUntil = Math.min(this.#storeUntil, mono);
    this.#heardUntil = Math.min(this.#heardUntil, mono);
  }
}
