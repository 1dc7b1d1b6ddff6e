import type { Witness } from "../cluster/witness.ts";

/**
 * Computes until when no other process may have presumed this one dead, by its own monotonic clock. Other processes judge a session by the
 * backing that its row in the store names: `store` (its heartbeat's counter stands still for the timeout) or `witness` (a coordination
 * service no longer shows it). While a change from one to the other is under way, or its reply was lost, other processes may read either,
 * so both must hold.
 *
 * If the witness showed the session with a gap, for example because the process was stopped for longer than its timeout, the session may
 * have been ended in the gap; that the witness shows it again proves nothing until a heartbeat finds it alive.
 */
export type Backing = "store" | "witness";

/** Safety between the end of trust in this process and the earliest moment at which another process may act. */
export const marginMs = 500;

export class Trust {
  readonly #windowMs: number;
  /** The backing that other processes read; "either" while that is uncertain. */
  #backing: Backing | "either" = "store";
  #storeUntil = 0;
  /** Until when the witness has shown the session without a gap. */
  #shownUntil = 0;
  /**
   * When the last beat began that found the session alive. A beat that announces the witness counts before its answer, because it finds the
   * session alive if it is applied.
   */
  #aliveAt = 0;
  /** Until when the store's last answer is trusted, whatever the backing is; a leader needs this. */
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

  /** True if the witness has shown the session without a gap since it was known to be alive. */
  #isShown(witness: Pick<Witness, "shownUntil" | "shownSince">): boolean {
    return witness.shownUntil() > 0 && witness.shownSince() <= this.#aliveAt;
  }

  /** The backing in the last beat that was applied; "either": other processes may read the store's or the witness's. */
  get told(): Backing | "either" {
    return this.#backing;
  }

  heardUntil(): number {
    return this.#heardUntil;
  }

  /** Called just before a beat with `backing` is sent. */
  beating(backing: Backing, beganMono: number): void {
    if (backing === this.#backing) return;
    // If the beat is applied and its reply lost, other processes count the silence from this beat, not from an earlier one.
    if (this.#backing === "witness") this.#storeUntil = beganMono + this.#windowMs;
    // If the beat is applied, it finds the session alive after this moment; processes that read it then judge by what the witness has shown
    // since.
    else if (this.#backing === "store") this.#aliveAt = beganMono;
    this.#backing = "either";
  }

  /** Called when that beat was applied. */
  beaten(backing: Backing, beganMono: number): void {
    this.#backing = backing;
    this.#aliveAt = beganMono;
    this.#storeUntil = this.#heardUntil = beganMono + this.#windowMs;
  }

  /**
   * Called when a stand-in announced that the session relies on the store.
   * @param untilMono until when the session is certain, by the stand-in's last answered proof of life; 0: no proof was answered, and other
   * processes may read either backing
   */
  stoodIn(untilMono: number): void {
    if (untilMono > 0) this.beaten("store", untilMono - this.#windowMs);
    else if (this.#backing !== "store") this.#backing = "either";
  }

  /** Called when the session is over: the process that ended it may act already, however recent the last proof of life is. */
  over(mono: number): void {
    this.#backing = "store";
    this.#storeUntil = Math.min(this.#storeUntil, mono);
    this.#heardUntil = Math.min(this.#heardUntil, mono);
  }
}
