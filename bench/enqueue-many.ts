/**
 * How many runs a second can many clients add, each one at a time, and how soon does such a run start?
 *
 *   npm run bench -- enqueue-many    Carillon and the peers in turn, three runs
 *   … --quick                        640 runs once, to check that the bench works
 *   … --runs N, --clients N, --processes N, --count N, --pause MS, --only NAME,NAME, --no-peers, --json
 *
 * Each client adds its next run when the one before is stored, as a handler of web requests does; the clients share two processes. No
 * worker executes the added runs.
 *
 * - per_s: the rate of all clients together, with runs that are due at once, so that workers are notified of them.
 * - untold_per_s: Carillon only, the same with runs that are due tomorrow, so that no worker is notified; of_untold is
 *   per_s / untold_per_s.
 * - p50_ms_start, p99_ms_start: the time from the moment at which a run is stored to the start of its handler in another process; the runs
 *   are added one at a time.
 */
import { Arena } from "./contest/arena.ts";
import { contest } from "./contest/contest.ts";
import type { Entrant } from "./contest/entrant.ts";
import { accounted, notesOf } from "./contest/notes.ts";
import { type Figures, latenessFigures, suffixed } from "./measure/figures.ts";

/** Each process adds this many runs before the measurement, so that code is compiled and statements are prepared. */
const warmUp = 100;
const dayMs = 86_400_000;

await contest({
  name: "enqueue-many",
  sizes: {
    clients: { usual: 32, quick: 4 },
    processes: { usual: 2, quick: 2 },
    count: { usual: 32_000, quick: 640 },
    pause: { usual: 20, quick: 20 },
  },
  aims: [
    { figure: "of_untold", atLeast: 0.9 },
    { figure: "p50_ms_start", atMost: 5 },
  ],
  compared: { per_s: "more" },
  async measure(who, { clients, processes, count, pause }) {
    const rates = await adding(who, processes, Math.ceil(clients / processes), Math.floor(count / processes));
    return { ...rates, ...suffixed(await starting(who, Math.ceil(count / 100), pause), "_start") };
  },
});

async function adding(who: string, processes: number, callers: number, each: number): Promise<Figures> {
  const arena = await Arena.open({ who, profile: "many" });
  try {
    const all: Entrant[] = [];
    for (let n = 0; n < processes; n++) all.push(await arena.enter("adds"));
    let from = 0;
    const add = async (count: number, dueInMs?: number) => {
      const due = dueInMs === undefined ? {} : { due: { fromMs: Date.now() + dueInMs, everyMs: 0 } };
      const took = all.map((one, n) => one.ask("add", { from: from + n * count, count, batch: 1, callers, ...due }));
      from += processes * count;
      return (processes * count * 1_000) / Math.max(...(await Promise.all(took)));
    };
    await add(warmUp);
    const figures: Figures = {};
    if (who === "carillon") figures.untold_per_s = await add(each, dayMs);
    figures.per_s = await add(each);
    if (figures.untold_per_s !== undefined) figures.of_untold = figures.per_s / figures.untold_per_s;
    const left = await arena.books.left();
    for (const one of all) await one.stop();
    return { ...figures, lost: Math.max(0, from - left), doubled: Math.max(0, left - from) };
  } finally {
    await arena.close();
  }
}

async function starting(who: string, count: number, pauseMs: number): Promise<Figures> {
  const arena = await Arena.open({ who, profile: "prompt" });
  try {
    const [runs, adds] = [await arena.enter("runs"), await arena.enter("adds")];
    await runs.ask("work");
    const all = warmUp + count;
    const safe = await adds.ask("addOneByOne", { from: 0, count: all, pauseMs, safe: true });
    await arena.handled([runs], all);
    await arena.acknowledged();
    const notes = await notesOf([runs]);
    const lateness: number[] = [];
    for (let id = warmUp; id < all; id++) lateness.push((notes.began.get(id) ?? Number.NaN) - (safe[id] as number));
    await adds.stop();
    await runs.stop();
    return { ...latenessFigures(lateness), ...accounted(notes, 0, all) };
  } finally {
    await arena.close();
  }
}
