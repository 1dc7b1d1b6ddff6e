/**
 * How soon after it was added does a run start on an idle system?
 *
 *   npm run bench -- latency         Carillon and the peers in turn, three runs of 1,000
 *   … --sync-standby                 each commit is also on the disk of a standby before it is answered; wanted: 1.2 times the limit
 *   … --quick                        one run of 100, to check that the bench works
 *   … --runs N, --count N, --pause MS, --only NAME,NAME, --no-peers, --json
 *
 * The time is from the call that adds a run to the start of its handler. Runs are added one at a time, about 8 ms apart: by the process
 * that executes them, and (`_across`) by another process. Both processes read the same monotonic clock. An added run must be on disk before
 * its handler starts, and for `_across` its claim too. So the limit is the commit of one inserted row of a bare table, and for `_across`
 * two commits one after the other, with the same pause before them.
 *
 * Carillon is measured a second time (`_relaxed`) with `durability: "relaxed"`: as in BullMQ, whose Redis syncs its file once a second, an
 * added run is then acknowledged, and its handler starts, before the run is on disk. The claim by another process still is on disk first.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { Arena, variable } from "./contest/arena.ts";
import type { Order } from "./contest/contender.ts";
import { contest } from "./contest/contest.ts";
import { accounted, notesOf } from "./contest/notes.ts";
import { type Figures, latenessFigures, suffixed } from "./measure/figures.ts";
import { synchronousPair } from "./measure/synchronous-pair.ts";

/** This many runs are executed before the measurement, so that code is compiled and statements are prepared. */
const warmUp = 100;

const args = process.argv.slice(2);
const synchronous = args.includes("--sync-standby");
const pair = synchronous ? await synchronousPair() : undefined;
if (pair) process.env.CARILLON_BENCH_POSTGRES_URL = pair.url;

await contest(
  {
    name: synchronous ? "latency-sync-standby" : "latency",
    sizes: { count: { usual: 1_000, quick: 100 }, pause: { usual: 8, quick: 8 } },
    aims: synchronous
      ? [
          { figure: "p99_ms", atMost: 10 },
          { figure: "p99_ms_across", atMost: 10 },
        ]
      : [
          { figure: "p50_ms", atMost: 0.5 },
          { figure: "p99_ms", atMost: 3 },
          { figure: "p50_ms_across", atMost: 1.5 },
          { figure: "p99_ms_across", atMost: 5 },
        ],
    notes: synchronous ? ["The server has a synchronous standby on the same machine, with fsync on."] : [],
    compared: {
      p50_ms: "less",
      p99_ms: "less",
      p50_ms_across: "less",
      p99_ms_across: "less",
      p50_ms_relaxed: "less",
      p99_ms_relaxed: "less",
      p50_ms_across_relaxed: "less",
      p99_ms_across_relaxed: "less",
    },
    limit: ({ count, pause }) => commits(count, pause),
    async measure(who, { count, pause }) {
      const figures = await bothWays({ who }, count, pause);
      if (who !== "carillon") return figures;
      return { ...figures, ...suffixed(await bothWays({ who, durability: "relaxed" }, count, pause), "_relaxed") };
    },
  },
  args.filter((arg) => arg !== "--sync-standby"),
);
pair?.close();

type Way = Pick<Order, "who" | "durability">;

async function bothWays(way: Way, count: number, pauseMs: number): Promise<Figures> {
  const local = await latency(way, count, pauseMs, false);
  return { ...local, ...suffixed(await latency(way, count, pauseMs, true), "_across") };
}

async function latency(way: Way, count: number, pauseMs: number, across: boolean): Promise<Figures> {
  const arena = await Arena.open({ ...way, profile: "prompt" });
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

/** Measures one commit, and (`_across`) two commits of which the second starts when the first has been answered. */
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
