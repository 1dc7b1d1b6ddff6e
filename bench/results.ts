/**
 * How long does it take from a handler's return until a waiting caller has its result?
 *
 *   npm run bench -- results         Carillon and BullMQ in turn, three runs of 1,000
 *   … --quick                        one run of 100, to check that the bench works
 *   … --runs N, --count N, --pause MS, --only NAME,NAME, --no-peers, --json
 *
 * Runs are enqueued one at a time, about 8 ms apart. The caller waits in the process that executes the handler, or (`_across`) in another.
 * The time is measured from the handler's start, because the handler returns at once, on the monotonic clock that both processes share.
 * Carillon returns a result only once the result is on disk. So the limit is: insert and commit one row of a bare table, notify another
 * connection, and query the row there. The peer is BullMQ's `waitUntilFinished`; the other peers do not return results to callers.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { Arena, variable } from "./contest/arena.ts";
import { contest } from "./contest/contest.ts";
import { accounted, notesOf } from "./contest/notes.ts";
import { type Figures, latenessFigures, suffixed } from "./measure/figures.ts";

/** This many runs are executed before the measurement, so that code is compiled and statements are prepared. */
const warmUp = 100;

await contest({
  name: "results",
  who: ["carillon", "bullmq"],
  sizes: { count: { usual: 1_000, quick: 100 }, pause: { usual: 8, quick: 8 } },
  aims: [
    { figure: "p50_ms", atMost: 2 },
    { figure: "p50_ms_across", atMost: 5 },
  ],
  compared: { p50_ms: "less", p99_ms: "less", p50_ms_across: "less", p99_ms_across: "less" },
  limit: ({ count, pause }) => told(count, pause),
  async measure(who, { count, pause }) {
    const local = await results(who, count, pause, false);
    return { ...local, ...suffixed(await results(who, count, pause, true), "_across") };
  },
});

async function results(who: string, count: number, pauseMs: number, across: boolean): Promise<Figures> {
  const arena = await Arena.open({ who, profile: "prompt" });
  try {
    const runs = await arena.enter("runs");
    const waits = across ? await arena.enter("adds") : runs;
    await runs.ask("work");
    const all = warmUp + count;
    const told = await waits.ask("awaitOneByOne", { from: 0, count: all, pauseMs });
    const notes = await notesOf([runs]);
    const lateness: number[] = [];
    for (let id = warmUp; id < all; id++) {
      const began = notes.began.get(id);
      if (began !== undefined) lateness.push((told[id] as number) - began);
    }
    if (across) await waits.stop();
    await runs.stop();
    return { ...latenessFigures(lateness), ...accounted(notes, 0, all) };
  } finally {
    await arena.close();
  }
}

async function told(count: number, pauseMs: number): Promise<Figures> {
  const client = new pg.Client({ connectionString: variable("CARILLON_BENCH_POSTGRES_URL") });
  const hears = new pg.Client({ connectionString: variable("CARILLON_BENCH_POSTGRES_URL") });
  await Promise.all([client.connect(), hears.connect()]);
  try {
    await client.query("create table kept (n int4 primary key)");
    await hears.query("listen told");
    const took: number[] = [];
    for (let n = 0; n < warmUp + count; n++) {
      await sleep(pauseMs);
      const heard = once(hears, "notification");
      const began = performance.now();
      const text = "with kept as (insert into kept values ($1)) select pg_notify('told', $1::text)";
      await client.query({ name: "keep", text, values: [n] });
      await heard;
      await hears.query({ name: "read", text: "select n from kept where n = $1", values: [n] });
      if (n >= warmUp) took.push(performance.now() - began);
    }
    await client.query("drop table kept");
    return { ...latenessFigures(took), ...suffixed(latenessFigures(took), "_across") };
  } finally {
    await Promise.all([client.end(), hears.end()]);
  }
}
