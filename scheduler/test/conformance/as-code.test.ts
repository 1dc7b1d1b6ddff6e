import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applyPlan } from "../../src/apply/apply.ts";
import { type PlanOptions, planApply } from "../../src/apply/apply-plan.ts";
import { systemClock } from "../../src/base/clock.ts";
import { every } from "../../src/schedule/schedule.ts";
import { edited } from "../../src/task/edits.ts";
import { defineTask, type TaskDefinition, type TaskOptions } from "../../src/task/task.ts";
import { writtenTask } from "../../src/task/written.ts";
import { everyPostgres } from "../support/servers.ts";
import { asCode, change, openStage, type Stage } from "../support/store-stage.ts";

describe.each(everyPostgres())("tasks as code, on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  const files = (tasks: Record<string, TaskOptions>) =>
    Object.entries(tasks).map(([name, options]) => defineTask(name, options));
  const plan = async (bundle: string, definitions: TaskDefinition[], options: Partial<PlanOptions> = {}) => {
    const names = definitions.map(({ name }) => name);
    const told = { bundle, prune: false, adopt: false, overwriteEdits: false, ...options };
    return planApply(definitions, await stage.store.applied.read(names, bundle), told);
  };
  const by = (reason = "why") => ({ author: "ann", reason, nowMs: () => stage.nowMs });
  const apply = async (bundle: string, tasks: Record<string, TaskOptions>, options: Partial<PlanOptions> = {}) =>
    (await applyPlan(stage.store, await plan(bundle, files(tasks), options), by(), systemClock)).map(
      ({ step, version, error }) => [step.task, step.kind, error?.code ?? version],
    );
  const kinds = async (bundle: string, tasks: Record<string, TaskOptions>, options: Partial<PlanOptions> = {}) =>
    Object.fromEntries((await plan(bundle, files(tasks), options)).steps.map((step) => [step.task, step.kind]));
  const definition = async (name: string) => (await stage.store.tasks.byName(name)).definition;
  const byHand = async (name: string, options: TaskOptions) => {
    const { definition, version } = await stage.store.tasks.byName(name);
    await stage.store.tasks.save(edited(definition, options), version, { ...change(stage.nowMs), author: "hand" });
  };

  it("creates tasks, finds equal ones unchanged, changes single fields, and keeps author and reason", async () => {
    expect(await apply("a", { "a-1": { timeout: "1h" }, "a-2": {} })).toEqual([
      ["a-1", "create", 1],
      ["a-2", "create", 1],
    ]);
    expect(await kinds("a", { "a-1": { timeout: "1h" }, "a-2": {} })).toEqual({ "a-1": "none", "a-2": "none" });
    const next = await plan("a", files({ "a-1": { timeout: "2h", retry: 3 } }));
    expect(next.steps).toMatchObject([
      {
        kind: "change",
        version: 1,
        changes: [
          { path: "timeout", was: "1h", is: "2h" },
          { path: "retry", was: 1, is: 3 },
        ],
      },
    ]);
    await applyPlan(stage.store, next, by("slower"), systemClock);
    expect(await stage.store.tasks.versions("a-1")).toMatchObject([
      { version: 2, author: "ann", reason: "slower" },
      { version: 1, author: "ann", reason: "why" },
    ]);
  });

  it("applies a task before its schedules, compares the schedules' own fields, and removes them first", async () => {
    const schedule = every("1h");
    const tasks = { "s:a": { of: "s", schedule }, "s:b": { of: "s", schedule, slotPayload: 1 }, s: { retry: 3 } };
    expect(await apply("s", tasks)).toEqual([
      ["s", "create", 1],
      ["s:a", "create", 1],
      ["s:b", "create", 1],
    ]);
    expect(await definition("s:b")).toMatchObject({ retry: { attempts: 3 }, slotPayload: 1 });
    expect(await apply("s", { ...tasks, s: { retry: 5 } })).toEqual([["s", "change", 2]]);
    await stage.store.tasks.followTasks(null, change(stage.nowMs));
    expect(await definition("s:b")).toMatchObject({ retry: { attempts: 5 } });
    const asBefore = { ...tasks, s: { retry: 5 } };
    expect(await kinds("s", asBefore)).toEqual({ s: "none", "s:a": "none", "s:b": "none" });
    await byHand("s:a", { slotPayload: 2 });
    const drifted = (await plan("s", files(asBefore))).steps.find(({ task }) => task === "s:a");
    expect(drifted).toMatchObject({ kind: "none", drift: [{ part: "slotPayload", applied: null, stored: 2 }] });
    const written = [await definition("s:a"), await definition("s:b")].map(writtenTask);
    expect(written).toEqual([
      { of: "s", schedule: { every: "1h" }, slotPayload: 2 },
      { of: "s", schedule: { every: "1h" }, slotPayload: 1 },
    ]);
    expect(await apply("s", { "s:b": tasks["s:b"], s: { retry: 5 } }, { prune: true })).toEqual([["s:a", "remove", 3]]);
    expect(await apply("s", {}, { prune: true })).toEqual([
      ["s:b", "remove", 2],
      ["s", "remove", 2],
    ]);
  });

  it("shows manual edits, keeps them, and reverts them on request", async () => {
    await apply("b", { b: { timeout: "1h", priority: 3 } });
    await byHand("b", { timeout: "5h" });
    const same = await plan("b", files({ b: { timeout: "1h", priority: 3 } }));
    expect(same.steps).toMatchObject([
      { kind: "none", drift: [{ part: "timeoutMs", applied: 3_600_000, stored: 18_000_000 }], by: { author: "hand" } },
    ]);
    expect(await apply("b", { b: { timeout: "1h", priority: 4 } })).toEqual([["b", "change", 3]]);
    expect(await definition("b")).toMatchObject({
      timeoutMs: 18_000_000,
      priority: 4,
      asDefined: { timeoutMs: 3_600_000 },
    });
    expect(await kinds("b", { b: { timeout: "1h", priority: 4 } })).toEqual({ b: "none" });
    // The files change an option that was edited by hand: the edit stays in force, and the new value is stored in `asDefined`.
    expect(await apply("b", { b: { timeout: "2h", priority: 4 } })).toEqual([["b", "change", 4]]);
    expect(await definition("b")).toMatchObject({ timeoutMs: 18_000_000, asDefined: { timeoutMs: 7_200_000 } });
    expect(await apply("b", { b: { timeout: "2h", priority: 4 } }, { overwriteEdits: true })).toEqual([
      ["b", "change", 5],
    ]);
    expect(await definition("b")).toEqual(defineTask("b", { timeout: "2h", priority: 4 }));
  });

  it("recognises an unmarked edit by comparing with the definition that the last apply left", async () => {
    await apply("c", { c: { timeout: "1h" } });
    await stage.store.tasks.save(defineTask("c", { timeout: "3h" }), null, change(stage.nowMs));
    const { steps } = await plan("c", files({ c: { timeout: "1h" } }));
    expect(steps).toMatchObject([{ kind: "none", drift: [{ part: "timeoutMs" }] }]);
    expect(await apply("c", { c: { timeout: "1h", group: "g" } })).toEqual([["c", "change", 3]]);
    expect(await definition("c")).toMatchObject({
      timeoutMs: 10_800_000,
      group: "g",
      asDefined: { timeoutMs: 3_600_000 },
    });
  });

  it("prunes only tasks that this bundle applied, followers first", async () => {
    await apply("d", { "d-1": {}, "d-2": { after: "d-1" }, "d-3": {} });
    await apply("other", { "o-1": {} });
    await stage.task("by-code");
    expect((await plan("d", files({ "d-3": {} }))).left.toSorted()).toEqual(["d-1", "d-2"]);
    expect(await apply("d", { "d-3": {} }, { prune: true })).toEqual([
      ["d-2", "remove", 1],
      ["d-1", "remove", 1],
    ]);
    expect(
      (await stage.store.tasks.byNames(["d-1", "d-2", "d-3", "o-1", "by-code"])).map(({ name }) => name).toSorted(),
    ).toEqual(["by-code", "d-3", "o-1"]);
    const row = await stage.one(`select deleted_by, deleted_why, bundle from $s.task where name = 'd-1'`);
    expect(row).toEqual({ deleted_by: "ann", deleted_why: "why", bundle: null });
    // A removed task belongs to no bundle, so another bundle may define it.
    expect(await apply("other", { "o-1": {}, "d-1": {} })).toEqual([["d-1", "create", 2]]);
  });

  it("counts the waiting runs that a removal ends, in the plan and in the result, but not upcoming slots", async () => {
    await apply("renames", { "old-name": { schedule: every("1000d") } }); // its slot must not come due during the test
    const task = await stage.store.tasks.byName("old-name");
    await stage.plan([task], await stage.session(), (task.nextSlotMs as number) + 1);
    for (let n = 0; n < 3; n++) await stage.enqueue(task);
    const renamed = await plan("renames", files({ "new-name": {} }), { prune: true });
    expect(renamed.steps).toMatchObject([{ kind: "create" }, { task: "old-name", kind: "remove", waiting: 3 }]);
    const done = await applyPlan(stage.store, renamed, by(), systemClock);
    expect(done.map(({ ended }) => ended)).toEqual([undefined, 3]);
  });

  it("refuses tasks of another owner, and takes over tasks without an owner only on request", async () => {
    await apply("e", { e: {} });
    await stage.task("loose", { timeout: "1h", priority: 3 });
    await byHand("loose", { priority: 7 });
    expect(await kinds("f", { e: {}, loose: {} })).toEqual({ e: "refused", loose: "refused" });
    expect(await kinds("f", { e: {} }, { adopt: true, overwriteEdits: true })).toEqual({ e: "refused" });
    expect(await apply("f", { loose: { timeout: "2h" } }, { adopt: true })).toEqual([["loose", "adopt", 3]]);
    expect(await definition("loose")).toMatchObject({ timeoutMs: 7_200_000, priority: 7, asDefined: { priority: 5 } });
    await stage.task("equal", { timeout: "1h" });
    expect(await apply("f", { equal: { timeout: "1h" } }, { adopt: true }), "no new version").toEqual([
      ["equal", "adopt", 1],
    ]);
    expect(await kinds("f", { loose: { timeout: "2h" }, equal: { timeout: "1h" } })).toEqual({
      loose: "none",
      equal: "none",
    });
  });

  it("tasks edited, removed or created between plan and apply are left; each other task is applied completely", async () => {
    await apply("g", { "g-1": {}, "g-2": {}, "g-3": {}, "g-4": {} });
    const wanted = files({
      "g-1": { priority: 1 },
      "g-2": { priority: 2 },
      "g-5": {},
      "g-6": {},
      "g-7": { calendar: { name: "nowhere" } },
    });
    const made = await plan("g", wanted, { prune: true });
    await byHand("g-1", { priority: 9 });
    await byHand("g-3", { priority: 9 });
    await stage.task("g-5", { priority: 8 });
    const results = await applyPlan(stage.store, made, by(), systemClock);
    expect(Object.fromEntries(results.map(({ step, error }) => [step.task, error?.code ?? step.kind]))).toEqual({
      "g-1": "TASK_STALE",
      "g-2": "change",
      "g-3": "TASK_STALE",
      "g-4": "remove",
      "g-5": "TASK_STALE",
      "g-6": "create",
      "g-7": "CALENDAR_UNKNOWN",
    });
    const left = await stage.store.tasks.byNames(["g-1", "g-2", "g-3", "g-4", "g-5", "g-6", "g-7"]);
    expect(
      Object.fromEntries(left.map(({ name, definition, bundle }) => [name, [definition.priority, bundle]])),
    ).toEqual({
      "g-1": [9, "g"],
      "g-2": [2, "g"],
      "g-3": [9, "g"],
      "g-5": [8, undefined],
      "g-6": [5, "g"],
    });
    // The removed task is created again after the plan was made, and its versions continue from the last one, so the plan is stale.
    const again = await plan("g", files({ "g-4": {} }));
    await stage.task("g-4");
    expect((await applyPlan(stage.store, again, by(), systemClock))[0]?.error?.code).toBe("TASK_STALE");
  });

  it("a definition in code does not change a task of a bundle until the bundle has removed it", async () => {
    await apply("h", { h: { schedule: every("1h") } });
    const code = defineTask("h", { schedule: every("5m") });
    expect(await stage.store.tasks.saveAll([code], change(stage.nowMs), asCode)).toMatchObject([
      { version: 1, bundle: "h" },
    ]);
    expect(await definition("h")).toEqual(defineTask("h", { schedule: every("1h") }));
    await apply("h", {}, { prune: true });
    expect(await stage.store.tasks.saveAll([code], change(stage.nowMs), asCode)).toMatchObject([
      { version: 2, definition: code },
    ]);
  });
});
