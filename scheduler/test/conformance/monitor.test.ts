import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineTask } from "../../src/task/task.ts";
import { ApiStage } from "../support/api-stage.ts";
import { inProcess } from "../support/in-process.ts";
import { postgres } from "../support/servers.ts";
import { change } from "../support/store-stage.ts";

const stage = new ApiStage();
const thresholds = {
  lateMs: 10_000,
  overdueMs: 60_000,
  unfiredMs: 60_000,
  stuckMs: 60_000,
  leaderlessMs: 30_000,
  summaryMs: 60_000,
};
const channels = { late: ["nowhere"], failed: ["nowhere"], ended: ["nowhere"] };
let t: number;

beforeAll(async () => {
  await stage.open();
  t = Math.floor((await stage.store.clock()).ms);
  for (const name of ["beat", "pipe"]) await stage.store.tasks.save(defineTask(name, {}), null, change(t));
});
afterAll(() => stage.close());

const byStore = () => ["--store", postgres().url, "--schema", stage.schema];
const check = (where: string[], ...more: string[]) =>
  inProcess(["check", ...more, ...where], { CARILLON_TOKEN: stage.tokens.viewer });
const open = async (rule: "late" | "ended" | "failed", subject: string) => {
  const found = { rule, subject, count: 1, text: "x", runId: null };
  await stage.store.alarms.look([rule], thresholds, channels, t, [found]);
};

describe.each([
  ["a store", () => byStore()],
  ["a server", () => ["--server", stage.urlOf()]],
])("carillon check of %s", (_, where) => {
  it("is OK if a node leads and no alarm is open", async () => {
    await stage.rows("delete from $s.alarm");
    expect(await check(where())).toEqual({
      code: 0,
      stdout: "CARILLON OK - a node leads, and no alarm is open | nodes=1 alarms=0\n",
      stderr: "",
    });
  });

  it("is as severe as the worst open alarm; silenced and acknowledged alarms do not count", async () => {
    await open("ended", "beat");
    expect(await check(where())).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/OK - a schedule is over: beat/),
    });
    await open("late", "beat");
    expect(await check(where())).toMatchObject({
      code: 1,
      stdout: "CARILLON WARNING - runs started late: beat; a schedule is over: beat | nodes=1 alarms=2\n",
    });
    await open("failed", "pipe");
    expect(await check(where())).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/^CARILLON CRITICAL - runs failed: pipe; /),
    });
    expect(await check(where(), "--task", "beat")).toMatchObject({ code: 1 });
    const json = await check(where(), "--json");
    expect([json.code, JSON.parse(json.stdout)]).toEqual([
      2,
      {
        state: "critical",
        exit: 2,
        says: ["runs failed: pipe", "runs started late: beat", "a schedule is over: beat"],
        nodes: 1,
        alarms: 3,
      },
    ]);
    await stage.store.alarms.see("failed", null, change(t));
    const silence = await stage.store.alarms.silence({ rule: "late", task: null, untilMs: t + 3_600_000 }, change(t));
    expect(await check(where())).toMatchObject({ code: 0 });
    await stage.store.alarms.unsilence(silence.silenceId, change(t));
    await stage.rows("delete from $s.alarm");
  });

  it("is UNKNOWN for an unknown task and for a wrong option", async () => {
    expect(await check(where(), "--task", "bete")).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^CARILLON UNKNOWN - TASK_UNKNOWN: .* \| nodes=0 alarms=0\n$/),
    });
    expect(await check(where(), "--tsk", "beat")).toMatchObject({ code: 3, stderr: expect.stringContaining("USAGE") });
  });
});

it("an unreachable cluster is critical, a refused token is unknown, a missing leader is critical", async () => {
  expect(await check(["--server", "http://127.0.0.1:1"])).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(/^CARILLON CRITICAL - SERVER_UNREACHABLE: /),
  });
  const refused = await inProcess(["check", "--server", stage.urlOf()], { CARILLON_TOKEN: "none" });
  expect(refused).toMatchObject({ code: 3, stdout: expect.stringMatching(/^CARILLON UNKNOWN - SIGN_IN_NEEDED: /) });
  await stage.server.stop();
  expect(await check(byStore())).toMatchObject({
    code: 2,
    stdout: expect.stringContaining("CRITICAL - no node leads"),
  });
});
