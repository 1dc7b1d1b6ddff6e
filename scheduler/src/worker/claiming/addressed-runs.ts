/**
 * How long, after a run was addressed to this worker, the worker's claims include the group of addressed runs, in ms. Heartbeats report
 * addressed runs that the worker missed.
 */
const askedForMs = 60_000;

/**
 * The group of runs that are addressed to this worker; its id is the negative number of the worker's session. Claims include this group
 * only while it may have runs, so runs without an addressee are claimed at no extra cost.
 */
export class AddressedRuns {
  #untilMono = Number.NEGATIVE_INFINITY;

  /** Called when a run was addressed to this worker; `mono` is the current monotonic time in ms. */
  addressed(mono: number): void {
    this.#untilMono = mono + askedForMs;
  }

  /**
   * Returns the groups for a claim: while this worker's own group may have runs, it comes before the others, because its runs can go to no
   * other worker.
   */
  before(groupIds: number[], sessionId: number, mono: number): number[] {
    return mono < this.#untilMono ? [-sessionId, ...groupIds] : groupIds;
  }
}
