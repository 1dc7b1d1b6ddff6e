/** Whoever was given runs of its own asks for more of them this long; pulses tell of those that it does not know of. */
const askedForMs = 60_000;

/**
 * The group of the runs that are addressed to this worker: the negative number of its session. It is asked for only while
 * there may be any, so what is addressed to nobody is claimed as if there were no addressees.
 */
export class OwnGroup {
  #untilMono = Number.NEGATIVE_INFINITY;

  /** A run was addressed to this worker. */
  addressed(mono: number): void {
    this.#untilMono = mono + askedForMs;
  }

  /** First of all: they can go nowhere else. */
  before(groupIds: number[], sessionId: number, mono: number): number[] {
    return mono < this.#untilMono ? [-sessionId, ...groupIds] : groupIds;
  }
}
