/**
 * How many runs a second can be added, in batches of 2,000?
 *
 *   npm run bench -- enqueue         Carillon and the peers in turn, three runs
 *   … --quick                        4,000 runs once, to check that the bench works
 *   … --runs N, --count N, --batch N, --only NAME,NAME, --no-peers, --json
 *
 * One process adds runs; no worker executes them. A batch is added when the one before is stored. Afterwards the subject's own tables must
 * hold all runs. The limit is one connection that inserts the same number of rows by bare INSERTs.
 */
import { Arena, variable } from "./contest/arena.ts";
import { contest } from "./contest/contest.ts";
import { rawLife } from "./limit/raw-life.ts";

await contest({
  name: "enqueue",
  sizes: { count: { usual: 200_000, quick: 4_000 }, batch: { usual: 2_000, quick: 2_000 } },
  compared: { per_s: "more" },
  async limit({ count }) {
    const { insert_per_s = Number.NaN } = await rawLife(variable("CARILLON_BENCH_POSTGRES_URL"), count);
    return { per_s: insert_per_s };
  },
  async measure(who, { count, batch }) {
    const arena = await Arena.open({ who, profile: "many" });
    try {
      const adds = await arena.enter("adds");
      // This batch is not measured: during it, connections are opened, statements prepared and code compiled.
      await adds.ask("add", { from: 0, count: batch, batch });
      const before = await adds.ask("usage");
      const tookMs = await adds.ask("add", { from: batch, count, batch });
      const after = await adds.ask("usage");
      const left = await arena.books.left();
      await adds.stop();
      return {
        per_s: (count * 1_000) / tookMs,
        cpu_us_per_op: (after.cpuUs - before.cpuUs) / count,
        rss_mb: after.rssBytes / 2 ** 20,
        lost: Math.max(0, count + batch - left),
        doubled: Math.max(0, left - count - batch),
      };
    } finally {
      await arena.close();
    }
  },
});
