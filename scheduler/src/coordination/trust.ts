import type { MembershipProvider } from "../cluster/membership-provider.ts";

/**
 * The proof of life that other processes demand of a session; its row in the store names it. With `store`, the session is dead if its
 * heartbeat counter has not changed for the timeout; with `provider`, if the coordination service no longer lists it.
 */
export type Backing = "store" | "provider";

/** Time in ms between the moment when this process stops relying on its session and the earliest moment when another process may act. */
export const marginMs = 500;

/**
 * Computes the time until which no other process can have declared this process dead, by this machine's monotonic clock. While a change of
 * the backing is in progress, or the answer to the change was lost, other processes may read either backing, so both proofs must hold.
 *
 * If the service did not list the session for some time, for example because the process was paused for longer than its timeout, the
 * session may have been ended in that time. A new entry in the list then proves nothing until a heartbeat finds the session alive.
 */
export class Trust {
  readonly #windowMs: number;
  /** The backing that the session's row names; "either" while that is unknown. */
  #backing: Backing | "either" = "store";
  #storeUntil = 0;
  /** The time until which the service has listed the session without interruption. */
  #shownUntil = 0;
  /**
   * When the last heartbeat was sent that found the session alive. A heartbeat that announces the service as backing counts even before its
   * answer: if it is executed at all, it finds the session alive.
   */
  #aliveAt = 0;
  /** The time until which the store's last answer is valid, whatever the backing is; used by the leader. */
  #heardUntil = 0;

  /** @param windowMs the session's timeout less a margin, in ms: how long a heartbeat is valid, counted from when it was sent */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  until(provider: Pick<MembershipProvider, "shownUntil" | "shownSince"> | undefined, mono: number): number {
    if (this.#backing === "store" || !provider) return this.#storeUntil;
    const until = this.#isShown(provider) ? provider.shownUntil() : Math.min(this.#shownUntil, mono);
    this.#shownUntil = until;
    return this.#backing === "provider" ? until : Math.min(until, this.#storeUntil);
  }

  /** True if the service has listed the session without interruption since a heartbeat last found it alive. */
  #isShown(provider: Pick<MembershipProvider, "shownUntil" | "shownSince">): boolean {
    return provider.shownUntil() > 0 && provider.shownSince() <= this.#aliveAt;
  }

  /** The backing that the session's row names; "either" if the row may name the store or the service. */
  get told(): Backing | "either" {
    return this.#backing;
  }

  heardUntil(): number {
    return this.#heardUntil;
  }

  /** Called just before a heartbeat that names `backing` is sent. */
  beating(backing: Backing, beganMono: number): void {
    if (backing === this.#backing) return;
    // If this heartbeat is executed and its answer is lost, other processes count the session's timeout from this heartbeat.
    if (this.#backing === "provider") this.#storeUntil = beganMono + this.#windowMs;
    // If this heartbeat is executed, the store finds the session alive after `beganMono`; from then on, other processes go by whether the
    // service lists the session.
    else if (this.#backing === "store") this.#aliveAt = beganMono;
    this.#backing = "either";
  }

  /** Called when the answer to a heartbeat that named `backing` has arrived. @param beganMono when that heartbeat was sent */
  beaten(backing: Backing, beganMono: number): void {
    this.#backing = backing;
    this.#aliveAt = beganMono;
    this.#storeUntil = this.#heardUntil = beganMono + this.#windowMs;
  }

  /**
   * Called after the stand-in thread has changed the backing to the store.
   * @param untilMono the time until which the session is certain by the thread's last successful heartbeat; 0 if none succeeded, so that
   * the row may name either backing
   */
  stoodIn(untilMono: number): void {
    if (untilMono > 0) this.beaten("store", untilMono - this.#windowMs);
    else if (this.#backing !== "store") this.#backing = "either";
  }

  /** Called when the session has been ended: other processes may act on that already, however recent the last heartbeat is. */
  over(mono: number): void {
    this.#backing = "store";
    this.#storeUntil = Math.min(this.#storeUntil, mono);
    this.#heardUntil = Math.min(this.#heardUntil, mono);
  }
}
