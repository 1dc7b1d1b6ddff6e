/**
 * How long after it was added does a run start, while there is nothing else to do?
 *
 *   npm run bench -- latency         Carillon and the peers in turn, three runs of 1,000
 *   … --quick                        100 once, to see that it works
 *   … --runs N, --count N, --pause MS, --only NAME,NAME, --no-peers, --json
 *
 * From the call that adds a run to its handler's beginning, one run at a time with some 8 ms between them: added by the process that runs
 * it, and (`_across`) by another. Both processes read the monotonic clock that they share. An added run must be on disk before its handler
 * begins, and across processes so must the claim. So the limit is one row of a bare table that is inserted and committed, and two, one
 * after the other, with the same pause before them.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { Arena, variable } from "./contest/arena.ts";
import { contest } from "./contest/contest.ts";
import { accounted, notesOf } from "./contest/notes.ts";
import { type Figures, latenessFigures, suffixed } from "./measure/figures.ts";

/** The number of runs before the measurement, which warm up: code is compiled, statements are prepared. */
const warmUp = 100;

await contest({
  name: "latency",
  sizes: { count: { usual: 1_000, quick: 100 }, pause: { usual: 8, quick: 8 } },
  aims: [
    { figure: "p50_ms", atMost: 0.5 },
    { figure: "p99_ms", atMost: 3 },
    { figure: "p50_ms_across", atMost: 1.5 },
    { figure: "p99_ms_across", atMost: 5 },
  ],
  compared: { p50_ms: "less", p99_ms: "less", p50_ms_across: "less", p99_ms_across: "less" },
  limit: ({ count, pause }) => commits(count, pause),
  async measure(who, { count, pause }) {
    const local = await latency(who, count, pause, false);
    return { ...local, ...suffixed(await latency(who, count, pause, true), "_across") };
  },
});

async function latency(who: string, count: number, pauseMs: number, across: boolean): Promise<Figures> {
  const arena = await Arena.open({ who, profile: "prompt" });
  try {
    const runs = await arena.enter("runs");
    const adds = across ? await arena.enter("adds") : runs;
    await runs.ask("work");
    const all = warmUp + count;
    const added = await adds.ask("addOneByOne", { from: 0, count: all, pauseMs });
    await arena.handled([runs], all);
    await arena.acknowledged();
    const notes = await notesOf([runs]);
    const lateness: number[] = [];
    for (let id = warmUp; id < all; id++) {
      const began = notes.began.get(id);
      if (began !== undefined) lateness.push(began - (added[id] as number));
    }
    if (across) await adds.stop();
    await runs.stop();
    return { ...latenessFigures(lateness), ...accounted(notes, 0, all) };
  } finally {
    await arena.close();
  }
}

/** The clock is read around each: if two are needed, the second begins when the first is answered. */
async function commits(count: number, pauseMs: number): Promise<Figures> {
  const client = new pg.Client({ connectionString: variable("CARILLON_BENCH_POSTGRES_URL") });
  await client.connect();
  try {
    await client.query("create table kept (n int4 primary key)");
    const insert = (n: number) => client.query({ name: "keep", text: "insert into kept values ($1)", values: [n] });
    const one: number[] = [];
    const two: number[] = [];
    for (let i = 0; i < warmUp + count; i++) {
      await sleep(pauseMs);
      const began = performance.now();
      await insert(2 * i);
      const between = performance.now();
      await insert(2 * i + 1);
      if (i < warmUp) continue;
      one.push(between - began);
      two.push(performance.now() - began);
    }
    await client.query("drop table kept");
    return { ...latenessFigures(one), ...suffixed(latenessFigures(two), "_across") };
  } finally {
    await client.end();
  }
}
