import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeSecretKey } from "../../src/access/secrets/secret-keys.ts";
import type { Client } from "../../src/api/client.ts";
import { applyWhole, itemPlanOf } from "../../src/apply/apply-items.ts";
import { planApply } from "../../src/apply/apply-plan.ts";
import type { GivenItem } from "../../src/apply/plan-items.ts";
import { systemClock } from "../../src/base/clock.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
let api: Client;
beforeAll(async () => {
  await stage.open({ secretKeys: makeSecretKey() });
  api = stage.client();
  await api.setSecret({ secret: "s", value: "a long secret" });
});
afterAll(() => stage.close());

const queue = (more: number, rest: object = {}) => ({ kind: "queue" as const, more, ...rest });
const hook = { secret: "s", scheme: "github" as const, task: "deploy" };
const options = { command: { argv: ["/usr/bin/true"] } };

/** Plans and applies alarm rules and hooks. @returns the outcome of each step */
async function apply(bundle: string, given: Partial<Parameters<Client["planBundle"]>[0]>, by = api) {
  const asked = { bundle, tasks: [], ...given };
  const { plan } = await by.planBundle(asked);
  const { appliedItems } = await by.applyBundle({ ...asked, plan, reason: "files" });
  return appliedItems.map(({ item, name, kind, version, error }) => [item, name, kind, error?.code ?? version]);
}
const stepsOf = async (bundle: string, given: Partial<Parameters<Client["planBundle"]>[0]>, by = api) =>
  (await by.planBundle({ bundle, tasks: [], ...given })).itemSteps;

describe("alarm rules and hooks of files", () => {
  test("are created, found equal, changed, and removed with prune only, in one plan with the tasks", async () => {
    const given = {
      tasks: [{ task: "deploy", options }],
      alarms: [{ name: "a-1", content: queue(5, { channels: [] }) }],
      hooks: [{ name: "h-1", content: hook }],
    };
    const first = await api.planBundle({ bundle: "a", ...given });
    expect(first.steps).toMatchObject([{ kind: "create" }]);
    expect(await apply("a", given)).toEqual([
      ["alarm", "a-1", "create", 1],
      ["hook", "h-1", "create", 1],
    ]);
    expect(await stepsOf("a", given)).toMatchObject([{ kind: "none" }, { kind: "none" }]);
    expect(await api.getAlarmRule({ alarmRule: "a-1" })).toMatchObject({ more: 5, bundle: "a", reason: "files" });
    expect(await api.getHook({ hook: "h-1" })).toMatchObject({ bundle: "a" });

    const changed = { alarms: [{ name: "a-1", content: queue(6, { scope: { groups: ["g"] }, channels: [] }) }] };
    expect(await stepsOf("a", changed)).toMatchObject([
      {
        kind: "change",
        version: 1,
        changes: [
          { path: "more", was: 5, is: 6 },
          { path: "scope", was: null, is: { groups: ["g"] } },
        ],
      },
    ]);
    expect(await apply("a", changed)).toEqual([["alarm", "a-1", "change", 2]]);
    const none = { alarms: [], hooks: [] };
    expect(await api.planBundle({ bundle: "a", tasks: [], ...none })).toMatchObject({
      itemSteps: [],
      leftItems: [
        { item: "alarm", name: "a-1" },
        { item: "hook", name: "h-1" },
      ],
    });
    // A kind that the request leaves out is not pruned: an older client does not know it.
    expect(await apply("a", { alarms: [], prune: true })).toEqual([["alarm", "a-1", "remove", 2]]);
    expect(await api.getHook({ hook: "h-1" })).toMatchObject({ version: 1 });
    expect(await apply("a", { ...none, prune: true })).toEqual([["hook", "h-1", "remove", 1]]);
    expect(await apply("b", { alarms: given.alarms, hooks: given.hooks })).toEqual([
      ["alarm", "a-1", "create", 3],
      ["hook", "h-1", "create", 2],
    ]);
    const { items } = await api.listAudit({ about: "alarm", named: "a-1" });
    expect(items.map(({ act }) => act)).toEqual(["create", "remove", "edit", "create"]);
  });

  test("keep what was edited by hand, and say so; overwriteEdits puts it back", async () => {
    const given = { alarms: [{ name: "c-1", content: queue(5) }], hooks: [{ name: "h-c", content: hook }] };
    await apply("c", given);
    await api.setAlarmRule({ alarmRule: "c-1", ...queue(9) });
    await api.setHook({ hook: "h-c", ...hook, enabled: false });
    expect(await stepsOf("c", given)).toMatchObject([
      { kind: "none", keepsEdits: true, drift: [{ part: "more", applied: 5, stored: 9 }] },
      { kind: "none", keepsEdits: true, drift: [{ part: "enabled", applied: null, stored: false }] },
    ]);
    const next = { ...given, alarms: [{ name: "c-1", content: queue(5, { description: "new" }) }] };
    expect(await apply("c", next)).toEqual([["alarm", "c-1", "change", 3]]);
    expect(await api.getAlarmRule({ alarmRule: "c-1" })).toMatchObject({ more: 9, description: "new", bundle: "c" });
    expect(await stepsOf("c", next)).toMatchObject([{ kind: "none", drift: [{ part: "more", applied: 5 }] }, {}]);
    // The threshold that was edited does not belong to the kind that the files now give.
    const conflict = await stepsOf("c", { alarms: [{ name: "c-1", content: { kind: "ended" } }] });
    expect(conflict).toMatchObject([{ kind: "refused", why: expect.stringContaining("edited by hand"), drift: [{}] }]);
    await expect(
      api.applyBundle({ bundle: "c", tasks: [], plan: "*", alarms: [{ name: "c-1", content: { kind: "ended" } }] }),
    ).rejects.toMatchObject({ code: "PLAN_REFUSED", message: expect.stringContaining("alarm rule c-1") });
    expect(await apply("c", { ...next, overwriteEdits: true })).toEqual([
      ["alarm", "c-1", "change", 4],
      ["hook", "h-c", "change", 3],
    ]);
    expect((await api.getHook({ hook: "h-c" })).enabled).toBeUndefined();
  });

  test("belong to no bundle once they are made anew, also if a node of an older version removed them", async () => {
    await apply("o", { alarms: [{ name: "o-1", content: queue(5) }], hooks: [{ name: "o-h", content: hook }] });
    // An older node knows no bundles, so it only marks what it removes.
    for (const [table, name] of Object.entries({ alarm_rule: "o-1", hook: "o-h" }))
      await stage.sql.query(`update ${stage.schema}.${table} set deleted_ms = 1 where name = $1`, [name]);
    expect(await api.createAlarmRule({ name: "o-1", ...queue(1) })).toMatchObject({ version: 2, bundle: null });
    expect(await api.setHook({ hook: "o-h", ...hook })).toMatchObject({ version: 2, bundle: null });
    expect(await stepsOf("o", { alarms: [], hooks: [], prune: true })).toEqual([]);
    expect(await api.setHook({ hook: "o-h", ...hook, enabled: false })).toMatchObject({ version: 3, bundle: null });
  });

  test("of another bundle or of nobody are refused; adopt takes over those of nobody, with an audit entry", async () => {
    await api.createAlarmRule({ name: "d-hand", ...queue(1) });
    await apply("d", { alarms: [{ name: "d-1", content: queue(1) }] });
    const given = { alarms: ["d-hand", "d-1"].map((name) => ({ name, content: queue(2) })) };
    expect(await stepsOf("e", given)).toMatchObject([
      { kind: "refused", why: expect.stringContaining("belongs to no bundle") },
      { kind: "refused", why: "it belongs to the bundle d" },
    ]);
    const own = { alarms: [{ name: "d-hand", content: queue(1) }], adopt: true };
    expect(await apply("e", own)).toEqual([["alarm", "d-hand", "adopt", 1]]);
    const [entry] = (await api.listAudit({ about: "alarm", named: "d-hand" })).items;
    expect(entry).toMatchObject({ act: "adopt", before: { bundle: null }, after: { bundle: "e" }, why: "files" });
  });

  test("that changed after the plan are left as they are, and reported", async () => {
    const { store } = stage;
    const given = (content: object): { alarm: GivenItem[]; hook: GivenItem[] } => ({
      alarm: [{ item: "alarm", name: "f-1", content: content as GivenItem["content"] }],
      hook: [{ item: "hook", name: "f-h", content: { ...hook, secret: "nowhere" } }],
    });
    const options = { bundle: "f", prune: false, adopt: true, overwriteEdits: false };
    const planned = async (content: object) => ({
      ...planApply([], [], options),
      ...(await itemPlanOf(store, given(content), options)),
    });
    const by = { author: "ann", reason: "", nowMs: () => Date.now() };
    const outcome = async (plan: Awaited<ReturnType<typeof planned>>) =>
      (await applyWhole(store, plan, by, systemClock)).items.map(({ error, version }) => error?.code ?? version);
    const stale = await planned(queue(1));
    await api.createAlarmRule({ name: "f-1", ...queue(3) });
    expect(await outcome(stale)).toEqual(["ALARM_RULE_EXISTS", "SECRET_FORBIDDEN"]);
    const adopting = await planned(queue(3));
    await apply("g", { alarms: [{ name: "f-1", content: queue(3) }], adopt: true });
    expect(await outcome(adopting)).toEqual(["PLAN_REFUSED", "SECRET_FORBIDDEN"]);
    await expect(
      api.applyBundle({ bundle: "g", tasks: [], alarms: [{ name: "f-1", content: queue(4) }], plan: "000" }),
    ).rejects.toMatchObject({ code: "TASK_STALE" });
  });

  test("need the rights that their own routes need, and are refused with the path of the mistake", async () => {
    const rule = [{ name: "theirs/r", content: queue(1) }];
    const wide = [{ name: "theirs/w", content: queue(1, { scope: { everywhere: true } }) }];
    const editor = stage.client("editor");
    expect(await stepsOf("h", { alarms: rule }, editor)).toMatchObject([{ kind: "create" }]);
    await expect(apply("h", { alarms: rule }, editor)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    const theirs = stage.clientOf(await stage.token("admin", { where: ["theirs"] }));
    expect(await apply("h", { alarms: rule }, theirs)).toEqual([["alarm", "theirs/r", "create", 1]]);
    await expect(apply("h", { alarms: wide }, theirs)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    await apply("h", { alarms: [...rule, ...wide, { name: "ours", content: queue(1) }] });
    const pruning = { alarms: rule, prune: true };
    expect(await stepsOf("h", pruning, theirs)).toMatchObject([{ kind: "none" }, { name: "theirs/w" }]);
    await expect(apply("h", pruning, theirs)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    await expect(stepsOf("h", { alarms: [{ name: "ours", content: queue(1) }] }, theirs)).rejects.toMatchObject({
      code: "ACCESS_DENIED",
    });
    const tasksOnly = stage.clientOf(await stage.token("admin", { scopes: ["tasks:read", "tasks:write"] }));
    await expect(stepsOf("h", { alarms: rule }, tasksOnly)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    expect(await tasksOnly.planBundle({ bundle: "h", tasks: [], prune: true })).toMatchObject({ itemSteps: [] });
    const empty = { bundle: "h", tasks: [], alarms: [], hooks: [], prune: true };
    const unread = await tasksOnly.planBundle(empty);
    expect(unread).toMatchObject({ itemSteps: [], unreadItems: ["alarm", "hook"] });
    expect(await tasksOnly.applyBundle({ ...empty, plan: unread.plan })).toMatchObject({ appliedItems: [] });
    expect(await api.getAlarmRule({ alarmRule: "theirs/r" })).toMatchObject({ bundle: "h" });
    expect(await api.planBundle(empty)).toMatchObject({ itemSteps: [{}, {}, {}], unreadItems: [] });
    for (const [given, path] of [
      [{ alarms: [{ name: "w", content: { kind: "ended", more: 1 } }] }, "alarms[0].content.more"],
      [{ alarms: [...rule, ...rule] }, "alarms[1].name"],
      [{ alarms: [{ name: "test", content: queue(1) }] }, "alarms[0].name"],
      [{ hooks: [{ name: "a b", content: hook }] }, "hooks[0].name"],
      [{ hooks: [{ name: "ours/h", content: hook }] }, "hooks[0].content.task"],
    ] as const)
      await expect(stepsOf("h", given as never), path).rejects.toMatchObject({ code: "OPTION_INVALID", path });
  });
});
