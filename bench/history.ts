/**
 * How long does a page of the lists take when ten million runs have ended?
 *
 *   npm run bench -- history         10,000,000 ended runs of 1,000 tasks; 300 pages of each kind, measured once
 *   … --quick                        20,000 runs, 20 pages, to check that the bench works
 *   … --finished N, --tasks N, --pages N, --runs N, --json
 *
 * SQL writes the runs as if they had ended over the last day; one in a hundred failed. Then pages are read through the store's port, as the
 * command line and the HTTP API do, one kind after the other: all tasks with their counters (`tasks`), the newest runs of all tasks
 * (`runs`), the newest runs of one task (`task_runs`), the newest failures (`failures`), one run with its attempts and log (`run`). The
 * bench checks each page: its length, the order from new to old, and the task.
 */
import { carillon } from "carillon";
import { Arena } from "./contest/arena.ts";
import { contest } from "./contest/contest.ts";
import { type Figures, latenessFigures } from "./measure/figures.ts";

const pageLength = 50;
const rowsPerStatement = 500_000;
const failedEvery = 100;
/** Each kind of page is measured for at most this many ms; if pages take seconds, fewer than `pages` of them are measured. */
const kindMs = 45_000;
/** The first id of the inserted runs, above all ids from the sequence. */
const firstId = 1_000_000;

await contest({
  name: "history",
  who: ["carillon"],
  sizes: {
    finished: { usual: 10_000_000, quick: 20_000 },
    tasks: { usual: 1_000, quick: 100 },
    pages: { usual: 300, quick: 20 },
  },
  runs: 1,
  aims: ["tasks", "runs", "task_runs", "failures", "run"].map((kind) => ({ figure: `p99_ms_${kind}`, atMost: 50 })),
  async measure(_who, { finished, tasks, pages }) {
    const arena = await Arena.open({ who: "carillon", profile: "prompt" });
    const tower = carillon({ store: arena.url, scheduler: false, worker: false, handleSignals: false });
    const nameOf = (task: number) => `history-${String(task).padStart(5, "0")}`;
    try {
      for (let task = 0; task < tasks; task++) tower.task(nameOf(task), {}, () => undefined);
      // This scheduler neither plans nor executes runs: its start only stores the definitions.
      await tower.start();
      const { store } = await tower.open();
      await fill(arena, finished, tasks);
      const any = (n: number) => Math.floor(Math.random() * n);
      const kinds: Record<string, () => Promise<boolean>> = {
        async tasks() {
          const list = await store.tasks.list();
          const counters = await store.tasks.counters(list.map(({ taskId }) => taskId));
          return list.length === tasks && counters.size > 0;
        },
        async runs() {
          const page = await store.runs.list({ states: ["succeeded", "failed", "cancelled"], limit: pageLength });
          return page.length === pageLength && newestFirst(page);
        },
        async task_runs() {
          const task = nameOf(any(tasks));
          const page = await store.runs.list({ task, states: ["succeeded", "failed"], limit: pageLength });
          return page.length === pageLength && newestFirst(page) && page.every((run) => run.task === task);
        },
        async failures() {
          const page = await store.runs.list({ states: ["failed"], limit: pageLength });
          return page.length === pageLength && newestFirst(page) && page.every(({ state }) => state === "failed");
        },
        async run() {
          const runId = firstId + any(finished);
          const [run, attempts, logs] = [
            await store.runs.find(runId),
            await store.runs.attempts(runId),
            await store.runs.logs(runId, pageLength),
          ];
          return run.runId === runId && attempts.length === 0 && logs.length === 0;
        },
      };
      const figures: Figures = { finished };
      for (const [kind, ask] of Object.entries(kinds)) {
        const took: number[] = [];
        await ask(); // Not measured, because the first call prepares its statements.
        const deadline = performance.now() + kindMs;
        for (let page = 0; page < pages && performance.now() < deadline; page++) {
          const began = performance.now();
          if (!(await ask())) throw new Error(`a page of ${kind} is not what was asked for`);
          took.push(performance.now() - began);
        }
        const { p50_ms, p99_ms, max_ms } = latenessFigures(took);
        Object.assign(figures, { [`p50_ms_${kind}`]: p50_ms, [`p99_ms_${kind}`]: p99_ms, [`max_ms_${kind}`]: max_ms });
      }
      return figures;
    } finally {
      await tower.stop();
      await arena.close();
    }
  },
});

/** Writes ended runs, spread over the last day in the order of their ids, and the tasks' counters. */
async function fill({ client }: Arena, finished: number, tasks: number): Promise<void> {
  const { rows } = await client.query("select min(id) as id, count(*)::int as n from carillon.task");
  if (rows[0].n !== tasks) throw new Error(`${tasks} tasks were defined, the store has ${rows[0].n}`);
  const values = [Date.now() - 60_000, 86_000_000 / finished, finished, rows[0].id, tasks];
  for (let from = 0; from < finished; from += rowsPerStatement) {
    await client.query(
      `insert into carillon.run_history (id, due_ms, slot_ms, fence, session_id, claimed_ms, created_ms, started_ms, ended_ms,
                                         task_id, version, attempt, outcome, priority, source, payload, error)
       select ${firstId} + i, ms - 5, null, i, null, ms - 20, ms - 30, ms - 4, ms, $4::int + i % $5::int, 1, 1,
              case when i % ${failedEvery} = 0 then 1 else 0 end, 5, 2, jsonb_build_object('n', i),
              case when i % ${failedEvery} = 0 then '{"code": "BROKEN", "message": "broken"}'::jsonb end
       from (select i, ($1::bigint - ($3::int - i) * $2::float8)::bigint as ms
             from generate_series($6::int, $7::int - 1) i) x`,
      [...values, from, Math.min(finished, from + rowsPerStatement)],
    );
  }
  await client.query(
    `insert into carillon.tally_delta (task_id, succeeded, failed)
     select task_id, count(*) filter (where outcome = 0), count(*) filter (where outcome = 1)
     from carillon.run_history group by task_id`,
  );
  // Bring the table into the state that autovacuum leaves, and its pages to the disk, so that neither is measured.
  await client.query("vacuum analyze carillon.run_history");
  await client.query("checkpoint");
}

function newestFirst(page: { endedMs: number | null }[]): boolean {
  return page.every(({ endedMs }, i) => i === 0 || (endedMs ?? 0) <= (page[i - 1]?.endedMs ?? 0));
}
