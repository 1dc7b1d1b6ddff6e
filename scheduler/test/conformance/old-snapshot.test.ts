import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { beatSql } from "../../src/store/postgres/cluster/sessions.ts";
import { inspectPostgres } from "../../src/store/postgres/runs/inspect.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage } from "../support/store-stage.ts";

describe.each(everyPostgres())("an old snapshot that keeps the rows of ended runs, on $title", (server) => {
  const dead = 100_000;
  let stage: Stage;
  let session: number;
  let release: () => Promise<void>;

  beforeAll(async () => {
    stage = await openStage(server);
    const task = await stage.task("ended", { group: "default" });
    session = await stage.session();
    // Creates runs that are ready in the session's group, addressed to the session, or in no group.
    await stage.rows(
      `insert into $s.run (id, due_ms, created_ms, task_id, group_id, version, state, priority, source)
       select -n, $1, $1, $2, case n % 3 when 0 then $3 when 1 then 0 else -$4::int end, 1, 2, 5, 0 from generate_series(1, ${dead}) n`,
      [stage.nowMs, task.taskId, task.groupId, session],
    );
    const holder = await stage.sql.connect();
    await holder.query("set application_name = 'a long report'");
    await holder.query("begin isolation level repeatable read");
    await holder.query(`select count(*) from ${stage.schema}.session`);
    release = async () => {
      await holder.query("rollback");
      holder.release();
    };
    await stage.rows("delete from $s.run where id < 0");
    await stage.rows("vacuum analyze $s.run");
  });
  afterAll(async () => {
    await release();
    await stage.close();
  });

  /**
   * Executes the statement, rolls it back, and returns how many pages of the table `run` and of its indexes it read. Pages of the catalogue
   * do not count, because their number grows when other clients change the catalogue.
   */
  const runPagesOf = async (sql: string, values: unknown[]) => {
    const client = await stage.sql.connect();
    const pages = `select sum(pg_stat_get_xact_blocks_fetched(of.oid))::int as pages from (
      select $1::regclass::oid as oid union all select indexrelid from pg_index where indrelid = $1::regclass) of`;
    const read = async () => (await client.query(pages, [`${stage.schema}.run`])).rows[0].pages as number;
    try {
      await client.query("begin");
      const before = await read();
      await client.query(sql, values);
      return (await read()) - before;
    } finally {
      await client.query("rollback");
      client.release();
    }
  };

  it("a heartbeat that only proves liveness reads none of these rows", async () => {
    const s = `"${stage.schema}"`;
    const values = [session, stage.nowMs, false, false, null, null];
    expect(await runPagesOf(beatSql(s, "waiting"), values), "with a look at what waits").toBeGreaterThan(dead / 200);
    expect(await runPagesOf(beatSql(s, "bare"), values)).toBe(0);
  });

  it("the snapshot's age and holder are shown in the scraped metrics and by doctor", async () => {
    const { snapshots } = await stage.store.figures.read(stage.nowMs);
    const { server: facts } = await inspectPostgres(server.url, stage.schema);
    for (const held of [snapshots, facts.snapshots]) {
      const found = held.find(({ kind }) => kind === "transaction");
      expect(found?.holder).toEqual(expect.any(String));
      expect(found?.ms).toBeGreaterThan(0);
      expect(found?.transactions).toBeGreaterThanOrEqual(1);
    }
  });
});

describe.each(everyPostgres())("a slow check for waiting runs, on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  it("proceeds alongside the heartbeats, which report its findings", async () => {
    const task = await stage.task("waits", { route: "least-loaded" });
    const session = await stage.session();
    const beat = () => stage.store.sessions.beat(session, stage.nowMs);
    const holder = await stage.sql.connect();
    const hold = () => holder.query(`begin; lock table ${stage.schema}.run in access exclusive mode`);
    for (let n = 0; n < 2; n++) {
      await hold();
      const slow = beat();
      await new Promise((resolve) => setTimeout(resolve, 150)); // longer than a heartbeat and its query for runs may take
      await holder.query("rollback");
      expect(await slow).toMatchObject({ alive: true, gated: false });
    }

    await hold();
    for (let n = 0; n < 2; n++) expect(await beat(), "no run can be read").toMatchObject({ alive: true, gated: false });
    await holder.query("rollback");
    holder.release();

    await stage.enqueue(task, { dueMs: stage.nowMs + 5 });
    await expect.poll(async () => (await beat()).nextDirectMs).toBe(stage.nowMs + 5);
  });
});
