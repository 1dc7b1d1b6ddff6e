import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isCarillonError } from "../../src/base/errors.ts";
import { at, cron, every } from "../../src/schedule/schedule.ts";
import { edited } from "../../src/task/edits.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { asCode, change, openStage, type Stage } from "../support/store-stage.ts";

describe.each(everyPostgres())("saving many definitions together, on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  /** Returns what the store keeps about a new task, without its ids and its name. */
  const kept = (name: string) =>
    stage.one(
      `select t.version, g.name as "group", t.definition - 'name' as definition, t.gate, t.gate_limit, t.paused_ms,
              t.deleted_ms, t.created_ms, t.changed_ms, replace(t.definition_text, t.name, '') as text,
              p.version as plan_version, p.next_slot_ms, p.after_end_ms, p.paused, exists (select from $s.gate where task_id = t.id) as place,
              (select json_agg(json_build_array(v.version, v.definition - 'name', v.author, v.reason, v.changed_ms))
               from $s.task_version v where v.task_id = t.id) as versions
       from $s.task t join $s.plan p on p.task_id = t.id join $s.worker_group g on g.id = t.group_id where t.name = $1`,
      [name],
    );

  it("stores and returns for each the same as saving it alone", async () => {
    const kinds: TaskOptions[] = [
      {},
      { schedule: cron("0 0 0 L * ?", { zone: "Asia/Shanghai" }), group: "reports" },
      { schedule: every("10s"), overlap: "queue", retry: { attempts: 3 }, timeout: "1m" },
      { schedule: every("10s", { mode: "delay" }), overlap: "skip" },
      { schedule: at(new Date(stage.nowMs + 60_000)), overlap: "replace", description: 'it\'s "quoted" {and} \\ more' },
      { schedule: at(new Date(stage.nowMs - 60_000)) },
      { overlap: { allow: 3 }, priority: 7, command: { argv: ["echo", "a b"] } },
    ];
    const when = change(stage.nowMs + 0.4);
    const together = await stage.store.tasks.saveAll(
      kinds.map((options, n) => defineTask(`together-${n}`, options)),
      when,
      asCode,
    );
    for (const [n, options] of kinds.entries()) {
      const { record } = await stage.store.tasks.save(defineTask(`alone-${n}`, options), null, when);
      expect(await kept(`together-${n}`), JSON.stringify(options)).toEqual(await kept(`alone-${n}`));
      const { taskId, name, definition, ...answered } = together.find((one) => one.name === `together-${n}`) ?? {};
      expect({ ...record, ...answered, definition: { ...definition, name: record.name } }).toEqual(record);
      expect(await stage.store.tasks.byName(`together-${n}`)).toMatchObject({ taskId, name, version: 1 });
    }
  });

  it("leaves equal definitions, makes a version of changed ones, and restores removed ones", async () => {
    const define = (name: string, description: string) => defineTask(name, { description, schedule: every("1h") });
    const both = (description: string) =>
      ["equal", "changed", "removed", "new"].map((name) => define(name, description));
    for (const name of ["equal", "changed", "removed"])
      await stage.store.tasks.save(define(name, name === "equal" ? "b" : "a"), null, change(1_000));
    await stage.store.tasks.remove("removed", change(1_000));
    const versions = async () =>
      Object.fromEntries(
        (await stage.store.tasks.saveAll(both("b"), change(2_000), asCode)).map((record) => [
          record.name,
          [record.version, record.changedMs, record.definition.description],
        ]),
      );
    const expected = {
      equal: [1, 1_000, "b"],
      changed: [2, 2_000, "b"],
      removed: [2, 2_000, "b"],
      new: [1, 2_000, "b"],
    };
    expect(await versions()).toEqual(expected);
    expect(await versions(), "once more, it changes nothing").toEqual(expected);
    expect(await stage.store.tasks.saveAll([], change(2_000), asCode)).toEqual([]);
  });

  it("keeps manual edits, applies all other changes, and forgets an edit when its task is removed", async () => {
    const code = (priority: number, description: string) =>
      defineTask("by-hand", { priority, description, group: "g1" });
    const start = async (priority: number, description: string) =>
      (await stage.store.tasks.saveAll([code(priority, description)], change(stage.nowMs), asCode))[0] as TaskRecord;
    const made = await start(5, "a");
    const hand = edited(made.definition, { priority: 7, group: "g2" });
    await stage.store.tasks.save(hand, made.version, change(stage.nowMs));
    expect(await start(5, "a")).toMatchObject({ version: 2, definition: { priority: 7, group: "g2" } });
    const next = await start(6, "b");
    expect(next).toMatchObject({ version: 3, definition: { priority: 7, group: "g2", description: "b" } });
    expect(next.definition.asDefined).toEqual({ priority: 6, group: "g1" });
    expect(next.groupId).toBe(await stage.store.tasks.group("g2"));
    await stage.store.tasks.remove("by-hand", change(stage.nowMs));
    expect((await start(5, "a")).definition).toEqual(code(5, "a"));
  });

  it("manual edits concurrent with starts of code that change the task: neither is lost", async () => {
    const name = "both-at-once";
    const code = (description: string) => defineTask(name, { description });
    await stage.store.tasks.saveAll([code("0")], change(stage.nowMs), asCode);
    let stale = 0;
    const editing = async (priority: number): Promise<void> => {
      const { definition, version } = await stage.store.tasks.byName(name);
      const made = edited(definition, { priority, ...(priority % 2 ? { group: `g${priority}` } : {}) });
      await stage.store.tasks.save(made, version, change(stage.nowMs)).catch((error) => {
        if (!isCarillonError(error, "TASK_STALE")) throw error;
        stale++;
        return editing(priority);
      });
    };
    const coding = async () => {
      for (let n = 1; n <= 20; n++) await stage.store.tasks.saveAll([code(String(n))], change(stage.nowMs), asCode);
    };
    const hand = async () => {
      for (const priority of [6, 7, 8, 9]) await editing(priority);
    };
    await Promise.all([coding(), hand()]);
    expect((await stage.store.tasks.byName(name)).definition, `${stale} stale`).toMatchObject({
      priority: 9,
      group: "g9",
      description: "20",
      asDefined: { priority: 5, group: "default" },
    });
  });

  it("nodes that start at once, each in its own order, make one version of each task without a deadlock", async () => {
    const stores = [stage.store, ...(await Promise.all(Array.from({ length: 5 }, () => stage.another())))];
    const definitions = Array.from({ length: 400 }, (_, n) => defineTask(`start-${n}`, { group: `starts-${n % 40}` }));
    const answers = await Promise.all(
      stores.map((store, n) => {
        const mine = definitions.slice(n * 20).concat(definitions.slice(0, n * 10));
        return store.tasks.saveAll(n % 2 ? mine.reverse() : mine, change(stage.nowMs), asCode);
      }),
    );
    expect(answers.map(({ length }) => length)).toEqual([400, 390, 380, 370, 360, 350]);
    const ids = new Map<string, number>();
    for (const { name, taskId, version } of answers.flat()) {
      expect(version).toBe(1);
      expect(ids.get(name) ?? taskId).toBe(taskId);
      ids.set(name, taskId);
    }
    expect(
      await stage.one(
        "select count(*) as n from $s.task_version v join $s.task t on t.id = v.task_id where t.name like 'start-%'",
      ),
    ).toEqual({ n: 400 });
  });
});
