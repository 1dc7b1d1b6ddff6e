import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { unservedSql, waitingSql } from "../../src/store/postgres/claims/ready.ts";
import { defineTask } from "../../src/task/task.ts";
import { everyPostgres } from "../support/servers.ts";
import { asCode, change, openStage, type Stage } from "../support/store-stage.ts";

interface Explained {
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
}

describe.each(everyPostgres())("the cost of a leader's heartbeat and of a scrape, on $title", (server) => {
  const tasks = 2_000;
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
    const definitions = Array.from({ length: tasks }, (_, i) => defineTask(`many-${i}`, {}));
    for (let from = 0; from < tasks; from += 1_000) {
      const made = await stage.store.tasks.saveAll(definitions.slice(from, from + 1_000), change(stage.nowMs), asCode);
      // The runs are due but not late.
      await stage.store.runs.enqueue(
        made.map((task) => stage.write(task)),
        stage.nowMs,
      );
    }
    await stage.sql.query(`vacuum analyze ${stage.schema}.task, ${stage.schema}.run`);
  });
  afterAll(() => stage.close());

  const blocksOf = async (sql: string) => {
    const [row] = await stage.rows<{ "QUERY PLAN": { Plan: Explained }[] }>(
      `explain (analyze, buffers, format json) ${sql}`,
    );
    const plan = row?.["QUERY PLAN"][0]?.Plan as Explained;
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
  };

  it("does not grow with the number of tasks: no runs are read if no group is late", async () => {
    const sql = unservedSql(`"${stage.schema}"`).replaceAll("$2", String(stage.nowMs));
    expect(await blocksOf(sql)).toBeLessThan(tasks / 4);
  });

  it("a group is late once its runs have been due for a minute, and not before", async () => {
    const told = async (inMs: number) => {
      const sql = unservedSql(`"${stage.schema}"`).replaceAll("$2", String(stage.nowMs + inMs));
      return (await stage.one<{ told: string[] }>(`select (${sql}) as told`)).told;
    };
    expect(await told(59_000)).toEqual([]);
    expect(await told(61_000)).toEqual([expect.stringMatching(/^group /)]);
  });

  it("a scrape costs no more with many waiting runs, in a group or addressed to a worker", async () => {
    await stage.rows("update $s.run set group_id = -7 where id % 2 = 0");
    await stage.sql.query(`vacuum analyze ${stage.schema}.run`);
    const sql = `select min(due_ms), count(*) from ${waitingSql(`"${stage.schema}"`, String(stage.nowMs + 1), 1, 10)} o`;
    expect(await stage.one(sql)).toMatchObject({ count: 11 });
    expect(await blocksOf(sql)).toBeLessThan(tasks / 4);
  });
});
