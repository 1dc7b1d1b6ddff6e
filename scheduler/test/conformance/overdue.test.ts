import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

/** Tests the alarm rule `overdue`. The rule finds runs that wait for a worker or for a limit, and the alarm's text names which. */
describe.each(everyPostgres())("overdue runs, on $title", (server) => {
  let stage: Stage;
  let sessionId: number;
  /** Ten minutes before the time of the check, so a run that was due then is overdue. */
  let longAgo: number;
  const minute = 60_000;
  beforeAll(async () => {
    stage = await openStage(server);
    sessionId = await stage.session("worker");
    longAgo = stage.nowMs - 10 * minute;
  });
  afterEach(async () => void (await stage.rows("delete from $s.run")));
  afterAll(() => stage.close());

  const overdue = async (nowMs = stage.nowMs): Promise<string[]> => {
    const thresholds = {
      lateMs: minute,
      overdueMs: minute,
      unfiredMs: 1,
      stuckMs: 1,
      leaderlessMs: 1,
      summaryMs: minute,
    };
    await stage.store.alarms.look(["overdue"], thresholds, { overdue: ["ops"] }, nowMs);
    return (await stage.store.alarms.open()).map(({ subject, text }) => {
      const [, what] =
        / and waits for (a worker|the limit of its group|its task's limit|its task's own limit)/.exec(text) ?? [];
      return what === "a worker" ? subject : `${subject}: ${what}`;
    });
  };
  const waits = (task: TaskRecord, dueMs = longAgo) => stage.enqueue(task, { dueMs }, longAgo);
  const claimed = async (task: TaskRecord, nowMs: number) => {
    const [run] = await stage.claim(sessionId, [task], nowMs);
    return run as ClaimedRun;
  };
  const end = (run: ClaimedRun, nowMs: number) =>
    stage.store.claims.settle(sessionId, [settlement(run, succeededVerdict, nowMs)], nowMs);

  it("finds addressed and routed runs, with and without an addressee, under their task's group", async () => {
    const route = { group: "routed", route: "random" } as const;
    const [nobody, busy] = [
      await stage.task("no-addressee", route, longAgo),
      await stage.task("addressed", { ...route, group: "addressed" }, longAgo),
    ];
    await waits(nobody, longAgo - 1);
    await waits(busy, longAgo - 2);
    await stage.rows("update $s.run set group_id = -$2::int where task_id = $1", [busy.taskId, sessionId]);
    expect((await overdue()).sort()).toEqual(["addressed", "no-addressee"]);
    const { oldest } = await stage.store.figures.read(stage.nowMs);
    expect(oldest).toEqual([
      { group: "addressed", dueMs: longAgo - 2 },
      { group: "routed", dueMs: longAgo - 1 },
    ]);
  });

  it("finds a routed task behind any number of another's runs, and an unclaimable one despite worker limits", async () => {
    const [many, one] = [
      await stage.task("many-routed", { route: "random" }, longAgo),
      await stage.task("one-routed", { route: "random" }, longAgo),
    ];
    await stage.store.runs.enqueue(
      Array.from({ length: 1_000 }, () => stage.write(many, { dueMs: longAgo - 1 })),
      longAgo,
    );
    await waits(one);
    expect((await overdue()).sort()).toEqual(["many-routed", "one-routed"]);
    await stage.rows("delete from $s.run");

    const limited = await stage.task(
      "limited",
      { group: "limited", limit: { perWorker: 1 }, labels: { a: "1" } },
      longAgo,
    );
    await waits(limited);
    expect(await overdue(), "no worker lives that could take it").toEqual(["limited"]);
    const node = { node: "able", role: "worker", host: "", pid: 1, version: "0", timeoutMs: 6_000 } as const;
    await stage.store.sessions.open({ ...node, groups: ["limited"], labels: { a: "1", b: "2" } }, longAgo);
    expect(await overdue(), "it waits for its worker's limit").toEqual(["limited: its task's limit"]);
  });

  it("runs enqueued late, or set aside until now, count as waiting for a worker from then on", async () => {
    const task = await stage.task("late", {}, longAgo);
    await stage.enqueue(task, { dueMs: longAgo });
    expect(await overdue()).toEqual([]);
    expect(await overdue(stage.nowMs + minute + 1)).toEqual(["late"]);
    await stage.store.tasks.pause("late", change(stage.nowMs));
    await stage.store.tasks.resume("late", change(stage.nowMs + minute));
    expect(await overdue(stage.nowMs + minute + 1)).toEqual([]);
    expect(await overdue(stage.nowMs + 2 * minute + 1)).toEqual(["late"]);
  });

  it.each([
    ["places", { overlap: "queue" }, "own limit, 1 at once: raise it"],
    ["room-of-its-key", { limit: { perKey: 1 } }, "own limit, 1 at once per key: raise it"],
    ["a-rate", { rate: { limit: 1, per: "1h" } }, "own limit, 1 in 3600 s: raise it"],
  ] as const)(
    "runs that waited for %s count as waiting for a worker from when the limit had a free slot",
    async (what, options, limit) => {
      const task = await stage.task(`waits-for-${what}`, { group: what, ...options }, longAgo);
      await waits(task);
      await waits(task);
      const rated = "rate" in options;
      await stage.store.plans.admitHeld(longAgo, longAgo);
      const run = await claimed(task, longAgo);
      const { name } = task.definition;
      expect(await overdue(), "that is another matter, and named").toEqual([`${name}: its task's own limit`]);
      expect(await stage.store.alarms.open()).toMatchObject([{ count: 1, text: expect.stringContaining(limit) }]);
      await end(run, stage.nowMs);
      const roomMs = rated ? longAgo + 60 * minute : stage.nowMs;
      await stage.store.plans.admitHeld(roomMs, roomMs);
      expect(await overdue(roomMs + minute), "it may be taken at any moment").toEqual([]);
      expect(await overdue(roomMs + minute + 1)).toEqual([task.definition.name]);
    },
  );

  it("runs of a group that reached its limit since then are overdue for that limit, even if a slot is free now", async () => {
    const task = await stage.task("grouped", { group: "grouped" }, longAgo);
    for (let i = 0; i < 4; i++) await waits(task);
    await stage.store.groups.limit("grouped", 1, change(longAgo));
    const full = async (nowMs: number) => end(await claimed(task, nowMs), nowMs);
    // A run that is running at the time of a check counts towards the limit, however long ago it was claimed. A run that started and ended
    // between two checks counts too.
    const first = await claimed(task, longAgo);
    const limited = ["grouped: the limit of its group"];
    expect(await overdue()).toEqual(limited);
    const [{ text = "" } = {}] = await stage.store.alarms.open();
    expect(text).toContain("the limit of its group grouped, 1 at once: raise it");
    await end(first, stage.nowMs + 1);
    expect(await overdue(stage.nowMs + 2)).toEqual(limited);
    await full(stage.nowMs + minute);
    expect(await overdue(stage.nowMs + 2 * minute)).toEqual(limited);
    expect(await overdue(stage.nowMs + 2 * minute + 1), "nobody takes them, and there is room").toEqual(["grouped"]);
    await stage.store.groups.limit("grouped", null, change(stage.nowMs));
    expect(await overdue(stage.nowMs + 2 * minute + 1)).toEqual(["grouped"]);
  });
});
