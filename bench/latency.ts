/**
 * How long after it was added does a run start, while there is nothing else to do?
 *
 *   npm run bench -- latency         Carillon and the peers in turn, three runs of 1,000
 *   … --quick                        100 once, to see that it works
 *   … --runs N, --count N, --pause MS, --only NAME,NAME, --no-peers, --json
 *
 * From the call that adds a run to its handler's beginning, one run at a time with some 8 ms between them: added by the
 * process that runs it, and (`_across`) by another. Both processes read the monotonic clock that they share. The limit is
 * the server's answer to one empty statement on a connection, from which there and back nothing can be quicker.
 */
import pg from "pg";
import { Arena, variable } from "./contest/arena.ts";
import { contest } from "./contest/contest.ts";
import { accounted, notesOf } from "./contest/notes.ts";
import { type Figures, latenessFigures, suffixed } from "./measure/figures.ts";

/** Before what counts: code is compiled, statements are prepared. */
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
  limit: ({ count }) => roundTrips(count),
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

async function roundTrips(count: number): Promise<Figures> {
  const client = new pg.Client({ connectionString: variable("CARILLON_BENCH_POSTGRES_URL") });
  await client.connect();
  try {
    const took: number[] = [];
    for (let i = 0; i < warmUp + count; i++) {
      const began = performance.now();
      await client.query({ name: "nothing", text: "select 1" });
      if (i >= warmUp) took.push(performance.now() - began);
    }
    return latenessFigures(took);
  } finally {
    await client.end();
  }
}
