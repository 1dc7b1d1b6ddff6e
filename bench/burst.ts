/**
 * 10,000 runs are due at one instant: when does the last handler start, and when are all completions stored?
 *
 *   npm run bench -- burst           Carillon and the peers in turn, three runs
 *   … --quick                        one run of 500, to check that the bench works
 *   … --runs N, --count N, --only NAME,NAME, --no-peers, --json
 *
 * One process executes the runs; another process has added them some seconds earlier. `last_start_ms` is the time from the due instant to
 * the start of the last handler. `all_acked_ms` is the time from the due instant until the subject's own tables hold no unfinished run; the
 * bench queries them every 5 ms once all handlers have started. No run may start early, and each must start exactly once. The limit is a
 * single timer that calls the same number of handlers.
 */
import { Arena } from "./contest/arena.ts";
import { monotonicMs, wallAheadMs } from "./contest/clock.ts";
import { contest } from "./contest/contest.ts";
import { accounted, lateness, notesOf } from "./contest/notes.ts";
import { type Figures, rounded } from "./measure/figures.ts";

const batch = 2_000;
const leadMs = 5_000;
const lookMs = 5;

await contest({
  name: "burst",
  sizes: { count: { usual: 10_000, quick: 500 } },
  aims: [
    { figure: "last_start_ms", atMost: 30 },
    { figure: "all_acked_ms", atMost: 200 },
  ],
  compared: { last_start_ms: "less", all_acked_ms: "less" },
  limit: ({ count }) => oneTimer(count),
  async measure(who, { count }) {
    const arena = await Arena.open({ who, profile: "prompt" });
    try {
      const [runs, adds] = [await arena.enter("runs"), await arena.enter("adds")];
      await runs.ask("work");
      const wallAhead = wallAheadMs();
      const dueMs = Date.now() + leadMs;
      const tookMs = await adds.ask("add", { from: 0, count, batch, due: { fromMs: dueMs, everyMs: 0 } });
      if (tookMs > leadMs - 1_000)
        throw new Error(`${who}: it took ${rounded(tookMs)} ms to add them, which is too long`);
      await arena.handled([runs], count, lookMs);
      await arena.acknowledged(0, lookMs);
      const ackedMs = monotonicMs();
      const notes = await notesOf([runs]);
      const { max_ms: last, ...late } = lateness(notes, 0, count, () => dueMs - wallAhead);
      await adds.stop();
      await runs.stop();
      return {
        last_start_ms: last as number,
        all_acked_ms: ackedMs - (dueMs - wallAhead),
        ...late,
        ...accounted(notes, 0, count),
      };
    } finally {
      await arena.close();
    }
  },
});

function oneTimer(count: number): Promise<Figures> {
  const dueMs = performance.now() + 50;
  const began: number[] = [];
  const handler = async () => void began.push(performance.now());
  return new Promise((resolve) => {
    setTimeout(() => {
      for (let i = 0; i < count; i++) void handler();
      resolve({ last_start_ms: (began.at(-1) as number) - dueMs });
    }, 50);
  });
}
