import { type Figures, latenessFigures } from "../measure/figures.ts";
import type { Entrant } from "./entrant.ts";

/** The start of each run's handler by run number, in ms on the monotonic clock; the earliest start if there are several. */
export interface Notes {
  began: Map<number, number>;
  /** Numbers of the runs whose handler started more than once. */
  doubled: Set<number>;
}

/**
 * Collects the handler starts of all `entrants`.
 * @param fromMs with `untilMs`: only starts in this span are counted, in ms on the monotonic clock; used for one period of a recurring task
 */
export async function notesOf(
  entrants: Entrant[],
  fromMs = Number.NEGATIVE_INFINITY,
  untilMs = Number.POSITIVE_INFINITY,
): Promise<Notes> {
  const began = new Map<number, number>();
  const doubled = new Set<number>();
  for (const entrant of entrants) {
    const notes = await entrant.ask("notes");
    for (let i = 0; i < notes.length; i += 2) {
      const [id, atMs] = [notes[i] as number, notes[i + 1] as number];
      if (atMs < fromMs || atMs >= untilMs) continue;
      const before = began.get(id);
      if (before !== undefined) doubled.add(id);
      began.set(id, before === undefined ? atMs : Math.min(before, atMs));
    }
  }
  return { began, doubled };
}

/** Counts the runs, of the `count` numbered from `from`, that never started (`lost`) or started more than once (`doubled`). */
export function accounted({ began, doubled }: Notes, from: number, count: number): Figures {
  let lost = 0;
  let twice = 0;
  for (let id = from; id < from + count; id++) {
    if (!began.has(id)) lost++;
    if (doubled.has(id)) twice++;
  }
  return { lost, doubled: twice };
}

export function first({ began }: Notes): number {
  let least = Number.POSITIVE_INFINITY;
  for (const atMs of began.values()) least = Math.min(least, atMs);
  return least;
}

/** Clock readings of two processes may differ by this many ms; a run counts as early only if it starts earlier than this. */
const clockErrorMs = 1;

/** @param dueMs returns the due time of a run by its number, in ms on the monotonic clock */
export function lateness({ began }: Notes, from: number, count: number, dueMs: (id: number) => number): Figures {
  const late: number[] = [];
  for (let id = from; id < from + count; id++) {
    const atMs = began.get(id);
    if (atMs !== undefined) late.push(atMs - dueMs(id));
  }
  return { ...latenessFigures(late), early: late.filter((ms) => ms < -clockErrorMs).length };
}
