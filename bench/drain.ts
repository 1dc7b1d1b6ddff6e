/**
 * How many trivial runs a second does a backlog of 100,000 complete, with one process and with two?
 *
 *   npm run bench -- drain           Carillon and the peers in turn, three runs
 *   … --quick                        2,000 runs once, to check that the bench works
 *   … --runs N, --count N, --only carillon,bullmq, --no-peers, --json
 *
 * All runs are added before any worker starts. The time is counted from the start of the first handler until the subject's own tables hold
 * no unfinished run; the bench queries them every 20 ms, so a completion counts only once it is stored. Each run must be handled exactly
 * once, and if a subject counts its ended runs, its count must agree. Carillon keeps its whole history (`_no_history`: no successful runs,
 * as with peers); pg-boss keeps its rows for a while, since this cannot be turned off; the others keep nothing. The limit is one connection
 * that executes the same work as bare SQL statements.
 */
import { Arena, variable } from "./contest/arena.ts";
import { monotonicMs } from "./contest/clock.ts";
import { contest } from "./contest/contest.ts";
import { accounted, first, notesOf } from "./contest/notes.ts";
import { rawLife } from "./limit/raw-life.ts";
import { type Figures, suffixed } from "./measure/figures.ts";

const batch = 2_000;

await contest({
  name: "drain",
  sizes: { count: { usual: 100_000, quick: 2_000 } },
  compared: {
    per_s: "more",
    per_s_2_processes: "more",
    per_s_no_history: "more",
    per_s_2_processes_no_history: "more",
  },
  limit: ({ count }) => rawLife(variable("CARILLON_BENCH_POSTGRES_URL"), count),
  async measure(who, { count }) {
    const figures: Figures = {};
    for (const processes of [1, 2]) {
      const suffix = processes === 1 ? "" : `_${processes}_processes`;
      Object.assign(figures, suffixed(await drained(who, processes, count), suffix));
      if (who === "carillon")
        Object.assign(figures, suffixed(await drained(who, processes, count, "failures"), `${suffix}_no_history`));
    }
    return figures;
  },
});

async function drained(who: string, processes: number, count: number, history?: "failures"): Promise<Figures> {
  const arena = await Arena.open({ who, profile: "many", history });
  try {
    const adds = await arena.enter("adds");
    await adds.ask("add", { from: 0, count, batch });
    await adds.stop();
    const added = await arena.books.left();
    if (added !== count) throw new Error(`${who}: ${count} were added, its tables have ${added}`);
    const workers = await Promise.all(Array.from({ length: processes }, () => arena.enter("runs")));
    await Promise.all(workers.map((worker) => worker.ask("work")));
    await arena.handled(workers, count);
    await arena.acknowledged();
    const doneMs = monotonicMs();
    const usage = await Promise.all(workers.map((worker) => worker.ask("usage")));
    const notes = await notesOf(workers);
    const ended = await arena.books.ended();
    if (ended !== null && ended !== count) throw new Error(`${who}: ${count} were due, it counts ${ended} as ended`);
    await Promise.all(workers.map((worker) => worker.stop()));
    return {
      per_s: (count * 1_000) / (doneMs - first(notes)),
      cpu_us_per_op: usage.reduce((sum, { cpuUs }) => sum + cpuUs, 0) / count,
      ...accounted(notes, 0, count),
    };
  } finally {
    await arena.close();
  }
}
