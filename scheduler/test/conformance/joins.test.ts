import { afterEach, describe, expect, it } from "vitest";
import type { Duration } from "../../src/base/duration.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import { type TestTower, testTower } from "../../src/testing/testing.ts";
import { postgres } from "../support/servers.ts";

let tower: TestTower;
afterEach(() => tower.close());

const opened = async () => (await tower.carillon.open()).store;
const find = async (runId: number) => (await opened()).runs.find(runId);
const nowMs = () => tower.now().getTime();

/**
 * Runs a parent that ends with one child, whose group has no worker.
 * @param before called before the parent runs
 * @returns the child's id
 */
async function fanOut(child: TaskOptions, before: () => Promise<unknown> = async () => undefined): Promise<number> {
  tower = await testTower({
    store: postgres().direct,
    now: "2030-01-01T00:00:00Z",
    groups: ["default"],
    tasks(carillon) {
      carillon.task("child", { group: "elsewhere", ...child }, () => undefined);
      carillon.task("join", {}, async (run) => (await run.inputs()).map(({ outcome }) => outcome));
      carillon.task("parent", {}, (run) => run.fanOut([{ task: "child", key: "only" }], { join: "join" }));
    },
  });
  await before();
  const { runId } = await tower.carillon.run("parent");
  await tower.advance("1m");
  const [made] = await (await opened()).flow.relatives(runId, 1);
  expect(made?.relation).toBe("child");
  return made?.runId as number;
}

/** Advances time in one leap. Checks that the join was created within a second after the child ended with `outcome`, and has run. */
async function expectJoined(childId: number, outcome: string, leap: Duration = "20m"): Promise<void> {
  await tower.advance(leap);
  const child = await find(childId);
  expect(child.state).toBe(outcome);
  const [join] = await (await opened()).runs.list({ task: "join", limit: 10 });
  expect(join).toMatchObject({ state: "succeeded" });
  expect((join?.createdMs as number) - (child.endedMs as number), "by the tower's time").toBeLessThan(1_000);
  expect((await find(join?.runId as number)).result).toEqual([outcome]);
}

describe("a join begins when its last child ends, even if no worker claimed that child:", () => {
  const inTheWay = async (): Promise<void> => void (await tower.carillon.enqueue("child"));
  const paused = async (): Promise<void> => void (await tower.carillon.pause("child"));
  const cases: [state: string, options: TaskOptions, before?: () => Promise<void>][] = [
    ["ready", {}],
    ["held", { overlap: "queue" }, inTheWay],
    ["paused", {}, paused],
  ];
  it.each(cases)("a child cancelled while it was %s", async (state, options, before) => {
    const child = await fanOut(options, before);
    expect((await find(child)).state).toBe(state);
    await tower.carillon.cancel(child);
    await expectJoined(child, "cancelled");
  });

  it("a child cancelled by an operation", async () => {
    const child = await fanOut({});
    const request = { kind: "cancel", filter: { task: "child" }, author: "test", reason: "" } as const;
    await (await opened()).operations.begin(request, "token", nowMs());
    await expectJoined(child, "cancelled");
  });

  it("a child removed with its task", async () => {
    const child = await fanOut({});
    await tower.carillon.remove("child");
    await expectJoined(child, "cancelled");
  });

  it("a child skipped for a newer run", async () => {
    const child = await fanOut({ overlap: "replace" }, inTheWay);
    expect((await find(child)).state).toBe("held");
    await tower.carillon.enqueue("child");
    // A run that is due waits for its task's limit, so the time must advance in smaller steps.
    await expectJoined(child, "skipped", "10s");
  });

  it("a child given up as the broadcast run of a worker that left before starting it", async () => {
    let member = 0;
    const child = await fanOut({ route: "broadcast" }, async () => {
      const identity = {
        node: "member",
        role: "worker",
        host: "here",
        pid: 1,
        version: "0",
        timeoutMs: 1e9,
        groups: ["elsewhere"],
      } as const;
      const session = await (await opened()).sessions.open(identity, nowMs());
      member = "sessionId" in session ? session.sessionId : 0;
    });
    expect(await find(child)).toMatchObject({ state: "ready", addressee: "member", shard: [0, 1] });
    await (await opened()).sessions.end(member, null, nowMs(), "left");
    await expectJoined(child, "cancelled");
  });
});
