import { describe, expect, it } from "vitest";
import { defineTask } from "../../src/task/task.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage } from "../support/store-stage.ts";

describe.each(everyPostgres())("a transaction that conflicts with another one, on $title", (server) => {
  it("fails with a code, has changed nothing, and can be retried", async ({ onTestFinished }) => {
    const stage = await openStage(server);
    onTestFinished(() => stage.close());
    const save = () => stage.store.tasks.save(defineTask("report"), null, change(stage.nowMs));
    for (const state of ["40P01", "40001", "55P03"]) {
      await stage.rows(`create or replace function $s.refuse() returns trigger language plpgsql as
        'begin raise exception ''in the way'' using errcode = ''${state}''; end'`);
      await stage.rows(
        "create or replace trigger refuse before insert on $s.task for each statement execute function $s.refuse()",
      );
      await expect(save()).rejects.toMatchObject({ code: "STORE_CONFLICT" });
    }
    await stage.rows("drop trigger refuse on $s.task");
    expect(await save()).toMatchObject({ changed: true, record: { version: 1 } });
  });
});
