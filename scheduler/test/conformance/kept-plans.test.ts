import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../src/base/limits.ts";
import { sourceNumber } from "../../src/store/postgres/enqueue/sources.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, settlement, succeededVerdict, until } from "../support/store-stage.ts";

interface PlanNode {
  "Relation Name"?: string;
  "Actual Rows": number;
  "Rows Removed by Filter"?: number;
  Plans?: PlanNode[];
}

/** PostgreSQL plans a prepared statement anew for at least its first five executions, and then may use a generic plan. */
const tried = 5;
const lone = 20;

describe.each(everyPostgres())("cached query plans of a connection, on $title", (server) => {
  let stage: Stage;
  let store: Store;
  let pool: pg.Pool;
  let task: TaskRecord;
  let session: number;

  beforeAll(async () => {
    stage = await openStage(server);
    store = await openPostgres({
      // Connects without a pooler, because a pooler in transaction mode keeps no prepared statements.
      url: server.direct,
      schema: stage.schema,
      connectionsMax: 1,
      driver: {
        pool: (config) => {
          pool = new pg.Pool(config);
          return pool;
        },
        client: (config) => new pg.Client(config),
      },
    });
    task = await stage.task("lone");
    session = await stage.session();
    for (let i = 0; i < lone; i++) await live();
  });
  afterAll(async () => {
    await store.close();
    await stage.close();
  });

  /** Enqueues, claims and settles one run, while no other run exists. */
  async function live(): Promise<void> {
    const { nowMs } = stage;
    await store.runs.enqueue([stage.write(task)], nowMs);
    const request = { sessionId: session, groupIds: [task.groupId], exceptTaskIds: [], untilMs: nowMs, nowMs };
    const { runs, nextDue } = await store.claims.claim({ ...request, limit: 2_000 });
    expect(runs).toHaveLength(1);
    await nextDue();
    await store.claims.settle(
      session,
      runs.map((run) => settlement(run, succeededVerdict, nowMs)),
      nowMs,
    );
  }

  const kept = async () =>
    (await pool.query("select name, generic_plans, custom_plans from pg_prepared_statements")).rows;
  const readsAllRuns = async (statement: string, values: number) => {
    const given = Array.from({ length: values }, () => "null").join();
    const { rows } = await pool.query(`explain execute "${statement}" (${given})`);
    return rows.some((row) => /Seq Scan on run /.test(row["QUERY PLAN"]));
  };

  it("are used by every statement of a single run, since replanning would take longer than executing", async () => {
    const counts = new Map((await kept()).map((row) => [row.name, row]));
    for (const name of ["run-insert-plain", "claim", "claim-next", "settle-finish"]) {
      const { generic_plans: generic, custom_plans: custom } = counts.get(name) ?? {};
      expect(Number(generic) + Number(custom), name).toBe(lone);
      expect(Number(custom), name).toBeLessThanOrEqual(tried);
    }
  });

  it("do not scan all runs, even if planned while there were few", async () => {
    const later = stage.nowMs + 3_600_000;
    const many = Array.from({ length: 4_500 }, () => stage.write(task, { dueMs: later }));
    await store.runs.enqueue(many, stage.nowMs);
    const known = `select reltuples::int as count from pg_class where oid = '${stage.schema}.run'::regclass`;
    await until("the planner knows of them", async () => ((await stage.one(known)).count as number) >= 4_500);
    await live();
    expect(await readsAllRuns("claim", 7)).toBe(false);
    expect(await readsAllRuns("settle-finish", 8)).toBe(false);
  });

  it("read from a task's history only what a page shows, whatever the outcomes of its other runs", async () => {
    const failing = await stage.task("failing");
    const failures = 5_000;
    await stage.rows(
      `insert into $s.run_history (id, due_ms, created_ms, ended_ms, task_id, version, attempt, outcome, priority, source)
       select 1000000 + i, $3::bigint, $3, $3, (array[$1::int, $2::int])[1 + i % 2], 1, 1, 1 - i % 2, 5, 2
       from generate_series(1, ${2 * failures}) as i`,
      [failing.taskId, task.taskId, stage.nowMs],
    );
    await stage.rows("analyze $s.run_history");
    const page = await store.runs.list({ task: "failing", states: ["succeeded", "failed"], limit: 50 });
    expect(page.map(({ runId }) => runId)).toEqual(
      Array.from({ length: 50 }, (_, i) => 1_000_000 + 2 * (failures - i)),
    );
    const name = (await kept()).map((row) => row.name as string).find((known) => known.startsWith("list-ended-"));
    const { rows } = await pool.query(
      `explain (analyze, format json) execute "${name}" (null, null, null, null, ${failing.taskId})`,
    );
    const [{ Plan: plan }] = rows[0]["QUERY PLAN"];
    expect(plan["Actual Rows"]).toBe(51);
    const passedOver = JSON.stringify(plan).matchAll(/"Rows Removed by Filter":(\d+)/g);
    expect([...passedOver].reduce((sum, [, removed]) => sum + Number(removed), 0)).toBeLessThan(51);
  });

  it("read at most one window of the history if no index matches the filter", async () => {
    const browse = { taskId: null, readyBeforeMs: null, sinceMs: null, untilMs: null, after: null, limit: 50 };
    const page = await store.browse.runs({ ...browse, states: ["failed"], match: { source: "manual" } });
    expect(page).toMatchObject({ runs: [], next: { phase: "ended", runId: expect.any(Number) } });
    const name = (await kept())
      .map((row) => row.name as string)
      .find((known) => /^browse-ended-.*-source$/.test(known));
    const { rows } = await pool.query(
      `explain (analyze, format json) execute "${name}" (null, null, null, null, null, ${sourceNumber("manual")})`,
    );
    const scans: { rows: number; removed: number }[] = [];
    const gather = (node: PlanNode) => {
      if (node["Relation Name"]?.startsWith("run_history"))
        scans.push({ rows: node["Actual Rows"], removed: node["Rows Removed by Filter"] ?? 0 });
      node.Plans?.forEach(gather);
    };
    gather(rows[0]["QUERY PLAN"][0].Plan);
    const read = scans.reduce((sum, scan) => sum + scan.rows + scan.removed, 0);
    // Each partition may return one row more than the limit needs.
    expect(read).toBeLessThanOrEqual(limits.endedRunsLookedAt + scans.length);
    expect(read).toBeGreaterThanOrEqual(limits.endedRunsLookedAt);
  });
});
