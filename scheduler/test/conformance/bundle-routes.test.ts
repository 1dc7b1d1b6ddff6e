import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/api/client.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
let admin: Client;
const options = { command: { argv: ["/usr/bin/true"] } };
const tasks = (...names: string[]) => names.map((task) => ({ task, options }));
const kinds = (steps: { task: string; kind: string }[]) => steps.map(({ task, kind }) => `${kind} ${task}`);

beforeAll(async () => {
  await stage.open();
  admin = stage.client();
});
afterAll(() => stage.close());

describe("a bundle over the API", () => {
  test("is planned, applied as planned, applied once per idempotency key, and attributed to the caller", async () => {
    const api = stage.client("editor");
    const given = { bundle: "b", tasks: tasks("b-1", "b-2") };
    const { plan, steps } = await stage.client("viewer").planBundle(given);
    expect(kinds(steps)).toEqual(["create b-1", "create b-2"]);
    // A caller with only read rights may plan, but the response is not stored under the idempotency key.
    for (const some of [given.tasks, []]) {
      const how = {
        token: stage.tokens.viewer,
        headers: { "idempotency-key": "look" },
        body: JSON.stringify({ tasks: some }),
      };
      expect((await stage.ask("POST", "/v1/bundles/b/plan", how)).body).toMatchObject({ bundle: "b" });
    }
    expect(steps[0]?.definition).toMatchObject({ name: "b-1", ...options });
    const again = { idempotencyKey: "apply-b" };
    const done = await api.applyBundle({ ...given, plan, reason: "begin" }, again);
    expect(done).toEqual({
      plan,
      bundle: "b",
      applied: ["b-1", "b-2"].map((task) => ({ task, kind: "create", version: 1 })),
      appliedItems: [],
    });
    expect(await api.applyBundle({ ...given, plan, reason: "begin" }, again)).toEqual(done);
    const { items } = await admin.listAudit({ about: "task", named: "b-1" });
    expect(items).toMatchObject([
      { act: "create", who: expect.stringMatching(/^editor-.* by token test$/), why: "begin" },
    ]);
    expect(await api.getTask({ task: "b-1" })).toMatchObject({ version: 1, bundle: "b" });
    expect((await api.planBundle(given)).steps).toMatchObject([{ kind: "none" }, { kind: "none" }]);
  });

  test("with an outdated plan is refused entirely; with plan * each task is applied separately", async () => {
    const given = { bundle: "c", tasks: tasks("c-1", "c-2") };
    await admin.applyBundle({ ...given, plan: "*" });
    const more = { ...given, tasks: given.tasks.map((one) => ({ ...one, options: { ...options, priority: 7 } })) };
    const { plan } = await admin.planBundle(more);
    await admin.editTask({ task: "c-2", options: { timeout: "1h" } });
    await expect(admin.applyBundle({ ...more, plan })).rejects.toMatchObject({ code: "TASK_STALE" });
    expect(await admin.getTask({ task: "c-1" })).toMatchObject({ version: 1 });
    const wrong = { task: "c-3", options: { ...options, calendar: { name: "nowhere" } } };
    const done = await admin.applyBundle({ ...more, tasks: [...more.tasks, wrong], plan: "*" });
    expect(done.applied).toMatchObject([
      { task: "c-1", version: 2 },
      { task: "c-2", version: 3 },
      { task: "c-3", error: { code: "CALENDAR_UNKNOWN", path: "calendar.name" } },
    ]);
    const { steps } = await admin.planBundle(more);
    expect(steps[1]).toMatchObject({ kind: "none", keepsEdits: true, drift: [{ part: "timeoutMs", applied: null }] });
  });

  test("with an impossible step, a repeated task or a cycle changes nothing", async () => {
    await admin.createTask({ task: "loose", options });
    const given = { bundle: "d", tasks: tasks("d-1", "loose"), plan: "*" };
    await expect(admin.applyBundle(given)).rejects.toMatchObject({
      code: "PLAN_REFUSED",
      message: expect.stringContaining("loose: it is there already"),
    });
    await expect(admin.applyBundle({ ...given, tasks: tasks("d-1", "d-1") })).rejects.toMatchObject({
      code: "TASK_DUPLICATE",
    });
    const circle = [
      { task: "d-1", options: { after: "d-2" } },
      { task: "d-2", options: { after: "d-1" } },
    ];
    await expect(admin.planBundle({ bundle: "d", tasks: circle })).rejects.toMatchObject({ code: "TASK_INVALID" });
    await expect(admin.planBundle({ bundle: "a b", tasks: [] })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(admin.getTask({ task: "d-1" })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    const adopted = await admin.applyBundle({ ...given, adopt: true, reason: "ours now" });
    expect(adopted.applied).toMatchObject([{}, { kind: "adopt", version: 1 }]);
    const [entry] = (await admin.listAudit({ about: "task", named: "loose" })).items;
    expect(entry).toMatchObject({ act: "adopt", before: { bundle: null }, after: { bundle: "d" }, why: "ours now" });
  });

  test("omits tasks of namespaces the caller cannot see, and cannot prune where the caller may only read", async () => {
    await admin.applyBundle({ bundle: "both", tasks: tasks("ours/x", "ours/y", "theirs/x", "theirs/y"), plan: "*" });
    const theirs = stage.clientOf(await stage.token("editor", { where: ["theirs"] }));
    const given = { bundle: "both", tasks: tasks("theirs/x"), prune: true };
    const plan = await theirs.planBundle(given);
    expect(kinds(plan.steps)).toEqual(["none theirs/x", "remove theirs/y"]);
    expect((await theirs.planBundle({ ...given, prune: false })).left).toEqual(["theirs/y"]);
    expect(await theirs.applyBundle({ ...given, plan: plan.plan })).toMatchObject({ applied: [{ task: "theirs/y" }] });
    await expect(theirs.planBundle({ bundle: "both", tasks: tasks("ours/x") })).rejects.toMatchObject({
      code: "ACCESS_DENIED",
    });
    const uses = [{ task: "theirs/z", options: { ...options, group: "ours/gpu" } }];
    await expect(theirs.planBundle({ bundle: "both", tasks: uses })).rejects.toMatchObject({ code: "ACCESS_DENIED" });

    // The caller is a viewer everywhere and an editor in one namespace. One step that it may see but not apply refuses the whole plan.
    const password = "ten bells at noon";
    const grants = [{ namespace: "theirs", role: "editor" as const }];
    await admin.createUser({ name: "mixed", password, role: "viewer", grants });
    const cookie = (await stage.ask("POST", "/v1/sign-in", { body: { name: "mixed", password } })).headers.get(
      "set-cookie",
    );
    const post = (path: string, body: object) =>
      stage.ask("POST", `/v1/bundles/both/${path}`, {
        headers: { cookie: String(cookie).split(";")[0] as string },
        body,
      });
    const body = { tasks: tasks("theirs/x"), prune: true };
    const shown = await post("plan", body);
    expect(kinds(shown.body.steps).toSorted()).toEqual(["none theirs/x", "remove ours/x", "remove ours/y"]);
    expect((await post("apply", { ...body, plan: shown.body.plan })).body.code).toBe("ACCESS_DENIED");
    expect((await admin.listTasks({ namespace: "ours" })).items).toHaveLength(2);
  });
});

describe("defining a task over the API", () => {
  test("replaces the version that was read, keeps manual edits, and can reuse a removed name", async () => {
    expect(await admin.defineTask({ task: "e", options }, { ifVersion: 0 })).toMatchObject({
      version: 1,
      changed: true,
    });
    await expect(admin.defineTask({ task: "e", options }, { ifVersion: 0 })).rejects.toMatchObject({
      code: "TASK_STALE",
    });
    await admin.editTask({ task: "e", options: { priority: 8 } });
    const anew = { task: "e", options: { ...options, timeout: "1h" }, reason: "imported" };
    expect(await admin.defineTask(anew, { ifVersion: 2 })).toMatchObject({
      version: 3,
      edited: ["priority"],
      changes: [{ part: "timeoutMs", was: null, is: 3_600_000 }],
    });
    expect(await admin.defineTask(anew)).toMatchObject({ version: 3, changed: false, changes: [] });
    await admin.removeTask({ task: "e" });
    expect(await admin.defineTask(anew, { ifVersion: 0 })).toMatchObject({ version: 4, edited: [] });
    await admin.removeTask({ task: "e" });
    expect(await admin.createTask({ task: "e", options })).toMatchObject({ version: 5 });
    await expect(admin.createTask({ task: "e", options })).rejects.toMatchObject({ code: "TASK_NAME_TAKEN" });
  });
});
