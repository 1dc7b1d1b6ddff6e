/** After a run was addressed to this worker, it claims from its own group for this long; heartbeats report addressed runs it missed. */
const askedForMs = 60_000;

/**
 * The group of runs that are addressed to this worker: the negative number of its session. Claims include it only while it may have runs,
 * so runs without an addressee are claimed at no extra cost.
 */
export class OwnGroup {
  #untilMono = Number.NEGATIVE_INFINITY;

  /** A run was addressed to this worker. */
  addressed(mono: number): void {
    this.#untilMono = mono + askedForMs;
  }

  /** Own group first: its runs can go to no other worker. */
  before(groupIds: number[], sessionId: number, mono: number): number[] {
    return mono < this.#untilMono ? [-sessionId, ...groupIds] : groupIds;
  }
}
