import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { at, defineTask, every, type Task, type TaskOptions } from "../../src/index.ts";
import { edited } from "../../src/task/edits.ts";
import { type TestTower, testTower } from "../../src/testing/testing.ts";
import { postgres } from "../support/servers.ts";
import { change, openStage } from "../support/store-stage.ts";

const thresholds = { lateMs: 1, overdueMs: 1, unfiredMs: 1, stuckMs: 1, leaderlessMs: 1, summaryMs: 60_000 };
const over = every("1h", { until: "2030-01-01T02:00:00Z" });

describe("a task without further slots", () => {
  const towers: TestTower[] = [];
  afterEach(async () => {
    for (const tower of towers.splice(0)) await tower.close();
  });

  async function open() {
    const ran: string[] = [];
    let digest: Task<undefined> | undefined;
    let fails = false;
    const tower = await testTower({
      store: postgres().direct,
      now: "2030-01-01T00:00:00Z",
      tasks: (carillon) => {
        digest = carillon.task<undefined>("digest", {}, async (run) => {
          ran.push(`${run.schedule} ${run.slot?.toISOString().slice(11, 16)}`);
          if (run.schedule === "long") await tower.sleep("30m", run.signal);
          if (fails) throw new Error("down");
        });
      },
    });
    towers.push(tower);
    const { store } = await tower.carillon.open();
    const now = () => change(tower.now().getTime());
    const save = (name: string, options: TaskOptions) => store.tasks.save(defineTask(name, options), null, now());
    const names = async () => (await store.tasks.list()).map(({ name }) => name.replace("digest:", ""));
    const fail = (are: boolean) => {
      fails = are;
    };
    return { tower, store, ran, now, save, names, fail, digest: digest as Task<undefined> };
  }

  it("is removed with atEnd: remove, once its last run has ended", async () => {
    const { tower, store, ran, names, digest } = await open();
    await digest.schedule("a", over, { atEnd: "remove" });
    await digest.schedule("kept", over);
    await digest.schedule("long", at("2030-01-01T02:30:00Z"), { atEnd: "remove" });
    const { taskId } = await store.tasks.byName("digest:a");
    await tower.advance("1h 59m");
    expect(await names()).toEqual(["digest", "a", "kept", "long"]);
    await tower.advance("10m");
    expect(await names()).toEqual(["digest", "kept", "long"]);
    await tower.advance("40m");
    expect(ran, "its run is under way").toContain("long 02:30");
    expect(await names()).toEqual(["digest", "kept", "long"]);
    await tower.advance("20m");
    expect(await names()).toEqual(["digest", "kept"]);
    expect(ran.toSorted()).toEqual(["a 01:00", "a 02:00", "kept 01:00", "kept 02:00", "long 02:30"]);
    expect((await store.tasks.counters([taskId])).get(taskId)?.succeeded).toBe(2);
    expect(
      (await store.audit.list({}, Number.MAX_SAFE_INTEGER, 100)).map(({ act, named, why }) => `${act} ${named} ${why}`),
    ).toContain("remove digest:a its schedule is over");
  });

  it("stays while it is paused, has slots, or has an open dead letter", async () => {
    const { tower, store, now, names, fail, digest } = await open();
    await digest.schedule("paused", over, { atEnd: "remove" });
    await digest.schedule("longer", over, { atEnd: "remove" });
    await digest.schedule("failed", at("2030-01-01T01:30:00Z"), { atEnd: "remove" });
    await tower.advance("1h");
    await tower.carillon.pause("digest:paused");
    const { definition } = await store.tasks.byName("digest:longer");
    await store.tasks.save(edited(definition, { schedule: every("1h") }), null, now());
    fail(true);
    await tower.advance("1h");
    fail(false);
    await tower.advance("2h");
    expect(await names()).toEqual(["digest", "failed", "longer", "paused"]);
    await tower.carillon.resume("digest:paused");
    await tower.advance("2m");
    expect(await names()).toEqual(["digest", "failed", "longer"]);
    const dismiss = { kind: "dismiss", filter: { task: "digest:failed" }, author: "ops", reason: "" } as const;
    await store.operations.begin(dismiss, "dismiss", tower.now().getTime());
    await tower.advance("2m");
    expect(await names()).toEqual(["digest", "longer"]);
  });

  it("raises an alarm with atEnd: alarm, until it has slots again", async () => {
    const { tower, store, now, save } = await open();
    await save("yearly", { schedule: over, command: { argv: ["/usr/bin/true"] }, atEnd: "alarm" });
    const alarms = async () => {
      await store.alarms.look(["ended"], thresholds, { ended: ["ops"] }, tower.now().getTime());
      return (await store.alarms.open()).map(({ rule, subject, text }) => `${rule} ${subject}: ${text}`);
    };
    await tower.carillon.pause("yearly");
    await tower.advance("3h");
    expect(await alarms()).toEqual([]);
    await tower.carillon.resume("yearly");
    await tower.advance("2m");
    expect(await alarms()).toEqual(["ended yearly: no slot is left: give it another schedule, or remove it"]);
    const { definition } = await store.tasks.byName("yearly");
    await store.tasks.save(edited(definition, { schedule: at("2030-01-02T00:00:00Z") }), null, now());
    await tower.advance("2m");
    expect(await alarms()).toEqual([]);
  });

  it("cannot have atEnd: remove in code, which would create the task again", async () => {
    const { tower } = await open();
    const coded = () => tower.carillon.task("coded", { schedule: over, atEnd: "remove" }, async () => undefined);
    expect(coded).toThrow("task coded: it would be removed at its end, and this code defines it");
    await expect(async () => coded()).rejects.toMatchObject({ code: "TASK_INVALID", path: "atEnd" });
  });

  it("does not include a task without a schedule", async () => {
    const { tower, save, names } = await open();
    await save("by-hand", { atEnd: "remove" });
    await tower.advance("5m");
    expect(await names()).toEqual(["by-hand", "digest"]);
  });
});

it("a pause whose condition no longer holds changes nothing, and recalls no claimed run", async () => {
  const stage = await openStage(postgres());
  onTestFinished(() => stage.close());
  const session = await stage.session("worker");
  const task = await stage.task("kept", { group: "kept" });
  await stage.enqueue(task);
  const [run] = await stage.claim(session, [task]);
  const { recalled } = await stage.store.tasks.pause("kept", change(stage.nowMs), async () => false);
  expect([recalled, await stage.store.claims.recalls(session)]).toEqual([[], []]);
  expect((await stage.store.tasks.byName("kept")).paused).toBe(null);
  await stage.store.tasks.pause("kept", change(stage.nowMs), async () => true);
  expect((await stage.store.claims.recalls(session)).map(({ runId }) => runId)).toEqual([run?.runId]);
});
