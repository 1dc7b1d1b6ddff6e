/**
 * How late do delayed runs start?
 *
 *   npm run bench -- timers          5,000 over 30 s; Carillon and the peers in turn, three runs
 *   … --quick                        300 over 2 s once, to check that the bench works
 *   … --runs N, --count N, --over MS, --only NAME,NAME, --no-peers, --json
 *
 * Runs are due one every 6 ms. One process adds all of them some seconds before the first is due; another process executes them. Lateness
 * is the time from a run's due time to the start of its handler. No run may start early, and each must start exactly once. The limit is one
 * timer for each run in a plain process.
 */
import { Arena } from "./contest/arena.ts";
import { contest } from "./contest/contest.ts";
import { timers } from "./contest/timers.ts";
import { type Figures, latenessFigures } from "./measure/figures.ts";

await contest({
  name: "timers",
  sizes: { count: { usual: 5_000, quick: 300 }, over: { usual: 30_000, quick: 2_000 } },
  aims: [
    { figure: "p50_ms", atMost: 1 },
    { figure: "p99_ms", atMost: 3 },
    { figure: "max_ms", atMost: 10 },
  ],
  compared: { p50_ms: "less", p99_ms: "less", max_ms: "less" },
  limit: ({ count }) => bareTimers(count),
  async measure(who, { count, over }) {
    const arena = await Arena.open({ who, profile: "prompt" });
    try {
      const [runs, adds] = [await arena.enter("runs"), await arena.enter("adds")];
      await runs.ask("work");
      const figures = await timers(arena, { runs, adds }, { from: 0, count, overMs: over, left: 0 });
      await adds.stop();
      await runs.stop();
      return figures;
    } finally {
      await arena.close();
    }
  },
});

function bareTimers(count: number): Promise<Figures> {
  const lateness: number[] = [];
  const everyMs = 6;
  const firstMs = performance.now() + everyMs;
  return new Promise((resolve) => {
    for (let i = 0; i < Math.min(count, 500); i++) {
      const dueMs = firstMs + i * everyMs;
      setTimeout(
        () => {
          lateness.push(performance.now() - dueMs);
          if (lateness.length === Math.min(count, 500)) resolve(latenessFigures(lateness));
        },
        Math.ceil(dueMs - performance.now()),
      );
    }
  });
}
