/** A crowd: at least this many slots; fewer are planned within a horizon in any case. Further counts are multiples of it. */
const few = 20_000;
const factor = 2;
/** How far ahead the leader looks for a crowd, in ms, and so the longest time that slots are planned before their time. */
export const farMs = 600_000;
/** The time between two looks, in ms. */
export const lookEveryMs = 120_000;
/** The time of a slot in ms until the planner has measured it. `slack` is for what the store does beside it. */
const assumedMs = 0.3;
const slack = 1.25;

interface Begin {
  atMs: number;
  /** The crowd's time: slots up to it are planned. */
  untilMs: number;
}

/**
 * Decides when the leader begins to plan slots of which so many are due at one time that planning them takes longer than the horizon. A
 * million slots take PostgreSQL a minute or more; with a horizon of 15 s, most would be planned after their time.
 */
export class Crowd {
  #perSlotMs = assumedMs;

  /** Updates the measured time of a slot. Small steps are ignored. */
  took(slots: number, ms: number): void {
    if (slots >= few / 20) this.#perSlotMs += (ms / slots - this.#perSlotMs) / 4;
  }

  /**
   * @param nth returns the time of the n-th unplanned slot, null if there are fewer
   * @returns the earliest beginning that some crowd needs; null without a crowd
   */
  async begin(nth: (n: number) => Promise<number | null>, horizonMs: number): Promise<Begin | null> {
    let first: Begin | null = null;
    let nearestMs: number | null = null;
    for (let n = few; ; n *= factor) {
      const untilMs = await nth(n);
      if (untilMs === null) return first;
      nearestMs ??= (await nth(1)) ?? untilMs;
      // There may be as many slots as the next count would show.
      const takesMs = n * factor * this.#perSlotMs * slack;
      // Slots that are spread over a longer time than they take are planned as they come.
      if (takesMs <= untilMs - nearestMs + horizonMs) continue;
      const atMs = untilMs - horizonMs - takesMs;
      if (first === null || atMs < first.atMs) first = { atMs, untilMs };
    }
  }
}
