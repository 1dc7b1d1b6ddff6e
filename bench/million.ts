/**
 * What does it cost to have a million delayed runs pending, and ten million?
 *
 *   npm run bench -- million         1 M of Carillon and of each peer, 10 M of Carillon; one run
 *   … --quick                        10,000 and 20,000, to check that the bench works
 *   … --pending N, --many N, --count N, --over MS, --runs N, --only NAME,NAME, --no-peers, --json
 *
 * The bench adds a million runs, spread over the day that begins in an hour. Then it adds 1,000 more over 10 s and measures the
 * lateness of each, as `timers` does; it does the same once before with nothing pending (`_empty`), in the same process.
 * `insert_per_s` is the rate of the calls that add the million; afterwards the subject's own tables must hold all runs. `rss_mb`
 * is the memory of the process that executes runs. `server_mb` is the size of the server's data, which BullMQ's Redis holds in
 * memory. `_10m` is Carillon alone, because the peers would need more than ten minutes.
 */
import { Arena } from "./contest/arena.ts";
import { contest } from "./contest/contest.ts";
import type { Entrant } from "./contest/entrant.ts";
import { tellRedis } from "./contest/redis.ts";
import { timers } from "./contest/timers.ts";
import { type Figures, suffixed } from "./measure/figures.ts";

const batch = 2_000;
const hourMs = 3_600_000;

await contest({
  name: "million",
  sizes: {
    pending: { usual: 1_000_000, quick: 10_000 },
    many: { usual: 10_000_000, quick: 20_000 },
    count: { usual: 1_000, quick: 100 },
    over: { usual: 10_000, quick: 1_000 },
  },
  runs: 1,
  aims: [
    { figure: "insert_per_s_1m", atLeast: 200_000 },
    { figure: "rss_mb_1m", atMost: 150 },
    { figure: "insert_per_s_10m", atLeast: 200_000 },
    { figure: "rss_mb_10m", atMost: 150 },
  ],
  compared: { insert_per_s_1m: "more", p50_ms_1m: "less", p99_ms_1m: "less", rss_mb_1m: "less" },
  async measure(who, { pending, many, count, over }) {
    const sizes = who === "carillon" ? { _1m: pending, _10m: many } : { _1m: pending };
    const arena = await Arena.open({ who, profile: "prompt" });
    try {
      const [runs, adds] = [await arena.enter("runs"), await arena.enter("adds")];
      await runs.ask("work");
      const asked = { count, overMs: over };
      const figures = suffixed(await timers(arena, { runs, adds }, { from: 0, left: 0, ...asked }), "_empty");
      let [there, next] = [0, count];
      for (const [suffix, size] of Object.entries(sizes)) {
        const insert = await inserted(arena, adds, next, there, size);
        next += size - there;
        there = size;
        const late = await timers(arena, { runs, adds }, { from: next, left: there, ...asked });
        next += count;
        Object.assign(figures, suffixed({ ...insert, ...late, server_mb: await serverMb(arena) }, suffix));
      }
      await adds.stop();
      return figures;
    } finally {
      await arena.close();
    }
  },
});

async function inserted(arena: Arena, adds: Entrant, from: number, there: number, size: number): Promise<Figures> {
  const count = size - there;
  const due = { fromMs: Date.now() + hourMs, everyMs: (24 * hourMs) / count };
  const tookMs = await adds.ask("add", { from, count, batch, due });
  const left = await arena.books.left();
  if (left !== size) throw new Error(`${arena.who}: ${size} should wait, its tables have ${left}`);
  return { insert_per_s: (count * 1_000) / tookMs };
}

/** The database's size on disk (PostgreSQL) or the memory in use (Redis), in MiB. */
async function serverMb(arena: Arena): Promise<number> {
  if (arena.who !== "bullmq") {
    const { rows } = await arena.client.query("select pg_database_size(current_database())::float8 as bytes");
    return rows[0].bytes / 2 ** 20;
  }
  const info = await tellRedis(process.env.CARILLON_BENCH_REDIS_URL ?? "", "INFO memory");
  return Number(/used_memory:(\d+)/.exec(info)?.[1]) / 2 ** 20;
}
