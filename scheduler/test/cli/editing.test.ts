import { describe, expect, it } from "vitest";
import { ask, file, here, json, objects, start } from "./process.ts";

const code = (priority: number, cron: string) => `
import { carillon, cron } from "carillon";
export const tower = carillon();
tower.task("settle", { schedule: cron("${cron}", { zone: "Asia/Shanghai" }), priority: ${priority}, retry: { attempts: 3, delay: "2s" } }, () => 1);
`;
const running = async (name: string, text: string) => {
  const dev = start(["dev", await file(name, text), ...here(), "--json"]);
  await dev.says(/"event":"ready"/);
  return dev;
};
const definition = async () => (await json("tasks", "show", "settle")).definition;

describe("tasks edit", () => {
  it("changes parts that survive a restart of the code, and revert restores them", async () => {
    const before = await running("settle.ts", code(5, "0 0 2 * * *"));
    const sets = ["--set", "schedule=0 0 3 * * *", "--set", "timeout=2h", "--set", "retry=5"];
    const edit = await ask("tasks", "edit", "settle", ...sets, "--reason", "month's end");
    expect([edit.code, edit.stdout]).toEqual([0, expect.stringMatching(/^settle is at version 2\n/)]);
    expect(edit.stdout).toMatch(/^ {2}schedule +at 02:00.*Asia\/Shanghai +at 03:00.*Asia\/Shanghai$/m);
    expect(edit.stdout).toMatch(/^ {2}timeoutMs +none +2h$/m);
    expect(edit.stdout).toMatch(/^ {2}retry +attempts 3 +attempts 5$/m);
    expect(edit.stderr).toContain("carillon tasks revert settle");
    expect(await definition()).toMatchObject({
      timeoutMs: 7_200_000,
      retry: { attempts: 5, delayMs: 2_000 },
      asDefined: { timeoutMs: null, retry: { attempts: 3 } },
    });
    const card = (await ask("tasks", "show", "settle")).stdout;
    expect(card).toMatch(/edited +retry \(defined as attempts 3\); schedule \(defined as at 02:00/);
    expect(card).toMatch(/^ +2 .* (?:retry|schedule|timeoutMs)(?:, (?:retry|schedule|timeoutMs)){2} +month's end$/m);
    expect((await ask("tasks", "list")).stdout).toMatch(/^settle .* edited$/m);
    await before.end("SIGTERM");

    const after = await running("settle.ts", code(7, "0 0 4 * * *"));
    expect(objects(after.stdout)).toContainEqual(
      expect.objectContaining({
        edits: { settle: expect.arrayContaining(["schedule", "timeoutMs", "retry"]) },
        message: expect.stringContaining("edited by hand"),
      }),
    );
    expect(await definition()).toMatchObject({
      priority: 7,
      timeoutMs: 7_200_000,
      schedule: { expression: "0 0 3 * * *", zone: "Asia/Shanghai" },
      asDefined: { schedule: { expression: "0 0 4 * * *" } },
    });
    expect(await json("tasks", "revert", "settle", "timeout")).toMatchObject({
      changes: { timeoutMs: { was: 7_200_000, is: null } },
      edited: ["retry", "schedule"],
    });
    expect((await ask("tasks", "revert", "settle", "timeout")).code).toBe(2);
    expect((await ask("tasks", "revert", "settle")).code).toBe(0);
    expect(await definition()).toMatchObject({ schedule: { expression: "0 0 4 * * *" }, retry: { attempts: 3 } });
    expect(await definition()).not.toHaveProperty("asDefined");
    expect((await ask("tasks", "revert", "settle")).stdout).toMatch(/^settle is so already, at version \d+$/m);
    await after.end("SIGTERM");
  });

  it("changes options of any kind, and the task's card shows each that differs from its default", async () => {
    await running("settle.ts", code(5, "0 0 2 * * *"));
    const sets = ["grace=10m", "onWorkerLost=ask", "workerLosses=5"].flatMap((one) => ["--set", one]);
    expect((await ask("tasks", "edit", "settle", ...sets)).code).toBe(0);
    const card = (await ask("tasks", "show", "settle")).stdout;
    expect(card.replaceAll(/\s+/g, " ")).toContain("; wait for a decision if its worker is lost; priority 5");
    expect(card).toMatch(/^ +also +workerLosses 5; grace 10m$/m);
  });

  it("refuses a change based on another version, and shows both versions", async () => {
    await running("settle.ts", code(5, "0 0 2 * * *"));
    const edit = (priority: number) =>
      ask("tasks", "edit", "settle", "--set", `priority=${priority}`, "--expect-version", "1");
    const codes = (await Promise.all([edit(6), edit(9)])).map((ended) => ended.code);
    expect(codes.toSorted()).toEqual([0, 1]);
    const late = await ask("tasks", "edit", "settle", "--set", "grace=3s", "--expect-version", "1");
    expect(late.code).toBe(1);
    expect(late.stderr).toMatch(
      /^carillon: TASK_STALE: task settle is at version 2, by .+@.+ at \d{4}-.*; this change was made from version 1; what differs from version 1: priority\n {2}hint: /,
    );
    expect(await definition()).toMatchObject({ priority: codes[0] === 0 ? 6 : 9, graceMs: 1_000 });
  });

  it("refuses invalid values, and names valid ones", async () => {
    await (await running("settle.ts", code(5, "0 0 2 * * *"))).end("SIGTERM");
    const refused = async ([set, error]: readonly [string, string]) => {
      const { code, stderr } = await ask("tasks", "edit", "settle", "--json", "--set", set);
      const told = [{ code: error, hint: expect.stringMatching(/\w/) }];
      expect([set, code, objects(stderr)]).toMatchObject([set, 2, told]);
    };
    const wrong = [
      ["priority=high", "TASK_INVALID"],
      ["colour=red", "USAGE"],
      ["schedule=never", "CRON_INVALID"],
      ["zone=Moon/Base", "ZONE_UNKNOWN"],
      ["command={argv:", "USAGE"],
      ["timeout", "USAGE"],
    ] as const;
    await Promise.all(wrong.map(refused));
    expect((await ask("tasks", "edit", "settle")).code).toBe(2);
    expect((await ask("tasks", "edit", "nobody", "--set", "priority=1")).code).toBe(3);
    expect((await json("tasks", "show", "settle")).version).toBe(1);
  });
});

it("a task's predecessors and a group's limit can be changed and are shown", async () => {
  const dev = await running(
    "flow.ts",
    `import { carillon } from "carillon";
     export const tower = carillon();
     for (const name of ["load", "audit", "report"]) tower.task(name, { group: "gpu" }, () => 1);`,
  );
  const edit = (after: string) => ask("tasks", "edit", "report", "--set", `after=${after}`);
  expect((await edit("load, audit")).stdout).toMatch(/^ {2}after +none +each of audit, load has succeeded$/m);
  expect((await ask("tasks", "show", "load")).stdout).toMatch(
    /^ +followed by +report, once it has succeeded and so has audit$/m,
  );
  expect((await edit('{"tasks":"load","on":"any"}')).code).toBe(0);
  expect(await json("tasks", "show", "load")).toMatchObject({ followedBy: [{ task: "report", on: "any", with: [] }] });
  const rate = (value: string) => ask("tasks", "edit", "report", "--set", `rate=${value}`);
  expect((await rate('{"limit":10,"per":"1m"}')).code).toBe(0);
  expect((await rate("none")).code).toBe(0);
  expect((await json("tasks", "show", "report")).definition).not.toHaveProperty("rate");
  expect((await edit("none")).stdout).toMatch(/^ {2}after +load has ended +none$/m);

  const set = await ask("groups", "limit", "gpu", "4", "--reason", "four cards");
  expect([set.code, set.stdout]).toEqual([0, "gpu: at most 4 runs at once, by all its workers together\n"]);
  expect((await ask("groups", "list")).stdout).toMatch(/^gpu +3 +1 +0 +4 +0 .* by .*: four cards$/m);
  expect(await json("groups", "limit", "gpu", "none")).toEqual({ group: "gpu", limit: null, changed: true });
  expect((await ask("groups", "limit", "nobody", "1")).code).toBe(3);
  await dev.end("SIGTERM");
});
