/**
 * Until when nobody else may have taken this process for dead, by its own monotonic clock. Others judge a session by
 * what its row in the store says it relies on: `store` (its heartbeat's counter stands still for the timeout) or
 * `witness` (a coordination service does not show it any more). While a change from one to the other is under way, or its
 * reply was lost, either may be what they read, so both must hold.
 */
export type Backing = "store" | "witness";

export class Trust {
  readonly #windowMs: number;
  /** What others read: known, or one of both. */
  #backing: Backing | "either" = "store";
  #storeUntil = 0;
  /** By the store's last answer, whatever the session relies on: a leader needs it. */
  #heardUntil = 0;

  /** @param windowMs the session's timeout less a margin: how long a heartbeat counts, from when it began */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** @param shownUntil the witness's word: 0 when there is none */
  until(shownUntil: number): number {
    if (this.#backing === "store") return this.#storeUntil;
    return this.#backing === "witness" ? shownUntil : Math.min(shownUntil, this.#storeUntil);
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
    this.#backing = "either";
  }

  /** It was applied. */
  beaten(backing: Backing, beganMono: number): void {
    this.#backing = backing;
    this.#storeUntil = this.#heardUntil = beganMono + this.#windowMs;
  }

  /** The session is over: whoever ended it may act already, however young the last proof of life is. */
  over(mono: number): void {
    this.#backing = "store";
    this.#storeUntil = Math.min(this.#storeUntil, mono);
    this.#heardUntil = Math.min(this.#heardUntil, mono);
  }
}
