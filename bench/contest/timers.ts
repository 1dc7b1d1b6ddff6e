import { setTimeout as pause } from "node:timers/promises";
import type { Figures } from "../measure/figures.ts";
import type { Arena } from "./arena.ts";
import { dueOf } from "./calls.ts";
import { wallAheadMs } from "./clock.ts";
import type { Entrant } from "./entrant.ts";
import { accounted, lateness, notesOf } from "./notes.ts";

const batch = 2_000;
/** The time in ms from the first add to the first run's due time; adding all runs must not take longer. */
const leadMs = 4_000;

/**
 * Adds `count` runs, spread evenly over `overMs`, and measures how late each starts.
 * @param from number of the first run @param left number of other unfinished runs that remain in the contender's tables
 */
export async function timers(
  arena: Arena,
  { adds, runs }: { adds: Entrant; runs: Entrant },
  { from, count, overMs, left }: { from: number; count: number; overMs: number; left: number },
): Promise<Figures> {
  const wallAhead = wallAheadMs();
  const [firstMs, everyMs] = [Date.now() + leadMs, overMs / count];
  const due = { fromMs: firstMs, everyMs };
  const tookMs = await adds.ask("add", { from, count, batch, due });
  if (tookMs > leadMs) throw new Error(`${arena.who}: it took ${tookMs} ms to add them, the first was due meanwhile`);
  const before = await runs.ask("usage");
  await pause(Math.max(0, firstMs + overMs - Date.now()));
  await arena.handled([runs], count);
  const after = await runs.ask("usage");
  await arena.acknowledged(left);
  const notes = await notesOf([runs]);
  return {
    ...lateness(notes, from, count, (id) => dueOf(due, id - from) - wallAhead),
    ...accounted(notes, from, count),
    cpu_us_per_op: (after.cpuUs - before.cpuUs) / count,
    rss_mb: after.rssBytes / 2 ** 20,
  };
}
