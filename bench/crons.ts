/**
 * 10,000 tasks are due each minute: when does the last handler start?
 *
 *   npm run bench -- crons           10,000 of Carillon and of each peer, 100,000 of Carillon; one run of one minute
 *   … --quick                        100 and 200, to check that the bench works
 *   … --tasks N, --many N, --runs N, --only NAME,NAME, --no-peers, --json
 *
 * Every task has the schedule `* * * * *`, in one process; each subject uses its own kind of recurring tasks. The measured minute is the
 * first that begins at least some seconds after all tasks are stored. A run that has not started 50 s after the start of the minute counts
 * as lost. `_many` is measured for Carillon alone, because no peer could start that many runs within the minute. The limit is one timer.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Arena } from "./contest/arena.ts";
import { wallAheadMs } from "./contest/clock.ts";
import { contest } from "./contest/contest.ts";
import { accounted, lateness, notesOf } from "./contest/notes.ts";
import { type Figures, suffixed } from "./measure/figures.ts";

const minuteMs = 60_000;
/** The shortest time in ms from the last stored task to the measured minute, so that the first planning is not measured. */
const settleMs = 6_000;
const patienceMs = 50_000;
/** A start up to this many ms before the minute counts for it, because a clock reading can place the start of a minute too late. */
const beforeMs = 500;

await contest({
  name: "crons",
  sizes: { tasks: { usual: 10_000, quick: 100 }, many: { usual: 100_000, quick: 200 } },
  runs: 1,
  aims: [
    { figure: "last_start_ms", atMost: 50 },
    { figure: "last_start_ms_many", atMost: 500 },
  ],
  compared: { last_start_ms: "less" },
  async measure(who, { tasks, many }) {
    const figures = await minute(who, tasks);
    return who === "carillon" ? { ...figures, ...suffixed(await minute(who, many), "_many") } : figures;
  },
});

async function minute(who: string, tasks: number): Promise<Figures> {
  const arena = await Arena.open({ who, profile: "prompt" });
  try {
    const runs = await arena.enter("runs");
    const began = performance.now();
    await runs.ask("everyMinute", { tasks });
    const setUpMs = performance.now() - began;
    const dueMs = Math.ceil((Date.now() + settleMs) / minuteMs) * minuteMs;
    await pause(dueMs - beforeMs - Date.now());
    const dueMonoMs = dueMs - wallAheadMs();
    const before = await runs.ask("usage");
    const looked = async () => notesOf([runs], dueMonoMs - beforeMs, dueMonoMs + patienceMs);
    let notes = await looked();
    while (notes.began.size < tasks && Date.now() < dueMs + patienceMs) {
      await pause(1_000);
      notes = await looked();
    }
    const after = await runs.ask("usage");
    const { max_ms: last, ...late } = lateness(notes, 0, tasks, () => dueMonoMs);
    const figures: Figures = {
      last_start_ms: last as number,
      ...late,
      ...accounted(notes, 0, tasks),
      cpu_us_per_op: (after.cpuUs - before.cpuUs) / tasks,
      rss_mb: after.rssBytes / 2 ** 20,
      set_up_ms: setUpMs,
    };
    await runs.close();
    return figures;
  } finally {
    await arena.close();
  }
}
