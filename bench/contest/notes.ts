import { type Figures, latenessFigures } from "../measure/figures.ts";
import type { Entrant } from "./entrant.ts";

/** The time at which each run's handler began, by the monotonic clock; the first time if there are several. */
export interface Notes {
  began: Map<number, number>;
  /** Numbers handled more than once. */
  doubled: Set<number>;
}

/** @param fromMs, untilMs only beginnings between these, by the monotonic clock: one period of a recurring task */
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

/** The numbers from `from` on that never began, or began twice. */
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

/** The largest difference of two clocks of one machine; a run that begins earlier than this began before its time. */
const clockErrorMs = 1;

/** @param dueMs by number, on the monotonic clock */
export function lateness({ began }: Notes, from: number, count: number, dueMs: (id: number) => number): Figures {
  const late: number[] = [];
  for (let id = from; id < from + count; id++) {
    const atMs = began.get(id);
    if (atMs !== undefined) late.push(atMs - dueMs(id));
  }
  return { ...latenessFigures(late), early: late.filter((ms) => ms < -clockErrorMs).length };
}
