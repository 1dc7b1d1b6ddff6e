/**
 * How much memory does a process use, by the number of tasks, and by the number of waiting runs?
 *
 *   npm run bench -- memory          1,000, 10,000 and 100,000 tasks; 100,000 and 1,000,000 runs; one run
 *   … --quick                        100 and 1,000 of each, to check that the bench works
 *   … --tasks N, --pending N, --runs N, --json
 *
 * Measures Carillon alone; the bench `million` measures the peers with pending runs. `rss_mb_tasks_N`: a node with N tasks, each due once a
 * year, 10 s after its start. `rss_mb_pending_N`: a node with one task that has N waiting runs, added by another process. `rss_mb_bare`: a
 * Node process with a Carillon instance that has not been started.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Arena } from "./contest/arena.ts";
import { contest } from "./contest/contest.ts";
import type { Entrant } from "./contest/entrant.ts";
import type { Figures } from "./measure/figures.ts";

const yearMs = 365 * 86_400_000;
const batch = 2_000;
const settleMs = 10_000;

await contest({
  name: "memory",
  who: ["carillon"],
  sizes: {
    least: { usual: 1_000, quick: 100 },
    tasks: { usual: 100_000, quick: 1_000 },
    pending: { usual: 1_000_000, quick: 1_000 },
  },
  runs: 1,
  async measure(_who, { least, tasks, pending }) {
    const figures: Figures = {};
    for (let size = least; size <= tasks; size *= 10) {
      const arena = await Arena.open({ who: "carillon", profile: "prompt" });
      try {
        const node = await arena.enter("runs");
        figures.rss_mb_bare ??= await rssMb(node);
        await node.ask("everyPeriod", { tasks: size, periodMs: yearMs });
        await pause(settleMs);
        figures[`rss_mb_tasks_${size}`] = await rssMb(node);
        const { rows } = await arena.client.query(
          "select count(*)::int as n from carillon.plan where next_slot_ms is not null",
        );
        if (rows[0].n !== size) throw new Error(`${size} tasks were defined, the store plans ${rows[0].n}`);
      } finally {
        await arena.close();
      }
    }
    const arena = await Arena.open({ who: "carillon", profile: "prompt" });
    try {
      const [node, adds] = [await arena.enter("runs"), await arena.enter("adds")];
      await node.ask("work");
      let there = 0;
      for (let size = Math.min(least * 100, pending); size <= pending; size *= 10) {
        const due = { fromMs: Date.now() + yearMs / 365, everyMs: yearMs / 365 / size };
        await adds.ask("add", { from: there, count: size - there, batch, due });
        there = size;
        await pause(settleMs);
        const left = await arena.books.left();
        if (left !== size) throw new Error(`${size} should wait, the store has ${left}`);
        figures[`rss_mb_pending_${size}`] = await rssMb(node);
      }
      await adds.stop();
      await node.stop();
    } finally {
      await arena.close();
    }
    return figures;
  },
});

async function rssMb(node: Entrant): Promise<number> {
  return (await node.ask("usage")).rssBytes / 2 ** 20;
}
