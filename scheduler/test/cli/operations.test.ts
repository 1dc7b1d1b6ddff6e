/** Takes about a minute: every step starts a process, and the steps of a test build on each other. */
import { join } from "node:path";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { ask, file, folder, here, json, schema, start, until, url } from "./process.ts";

const tasksFile = `
import { carillon, cron } from "carillon";
export const tower = carillon();
let broken = process.env.BROKEN === "yes";
tower.task("order", {}, (_run, n) => { if (broken) throw new Error("order " + n + " refused"); return n; });
tower.task("eu-a", { schedule: cron("0 9 * * *") }, () => 1);
tower.task("eu-b", { schedule: cron("0 9 * * *") }, () => 1);
tower.task("us-a", { schedule: cron("0 9 * * *") }, () => 1);
tower.task("pile", { group: "nobody" }, () => 1);
`;
const dev = async (broken: string) => {
  const one = start(["dev", await file("operations.ts", tasksFile), ...here(), "--json"], { env: { BROKEN: broken } });
  await one.says(/"event":"ready"/);
  return one;
};
const code = async (...args: string[]) => {
  const { code, stderr } = await ask(...args, "--json");
  return [code, stderr === "" ? undefined : JSON.parse(stderr.trim().split("\n").at(-1) as string).code];
};

describe("dead letters and operations", () => {
  it("are shown by reason, redriven by filter by the leader, and dismissed by the command if no node runs", async () => {
    const broken = await dev("yes");
    await Promise.all(["1", "22", "333"].map((n) => ask("tasks", "run", "order", "--payload", n, "--wait")));
    const { letters, groups } = await json("dead", "list");
    expect([letters, groups.length]).toEqual([3, 1]);
    const [{ fingerprint }] = groups;
    expect((await ask("dead", "list")).stdout).toMatch(
      new RegExp(`^${fingerprint} +3 .* order +order # refused$`, "m"),
    );
    expect((await ask("dead", "show", fingerprint)).stdout).toMatch(
      /^3 dead letters of order\nlast: order \d+ refused$/m,
    );
    expect(await code("dead", "show", "000000000000")).toEqual([3, "RUN_UNKNOWN"]);
    const client = new pg.Client(url);
    await client.connect();
    // Makes the run history look as if retention had dropped it while its dead letters are still there; a second call restores it.
    const turned = () => client.query(`update ${schema}.run_history set id = -id`);
    await turned();
    expect((await ask("dead", "show", fingerprint)).stdout).toMatch(
      /dropped by retention\)\n3 dead letters of order$/m,
    );
    await turned();
    await client.end();
    await broken.end("SIGTERM");
    expect(await code("dead", "redrive")).toEqual([2, "FILTER_EMPTY"]);
    expect(await json("dead", "redrive", "--fingerprint", fingerprint, "--dry-run")).toMatchObject({
      total: 3,
      dryRun: true,
    });

    const whole = await dev("no");
    const { operation } = await json("dead", "redrive", "--fingerprint", fingerprint, "--reason", "mended");
    await until(async () => (await json("operations", "show", String(operation))).state === "done");
    expect(await json("operations", "show", String(operation))).toMatchObject({
      kind: "redrive",
      total: 3,
      done: 3,
      reason: "mended",
    });
    await until(async () => (await json("runs", "list", "--state", "succeeded")).length === 3);
    const results = (await json("runs", "list", "--state", "succeeded")).map(
      ({ result }: { result: number }) => result,
    );
    expect(results.sort()).toEqual([1, 22, 333]);
    const [again] = await json("runs", "list", "--state", "succeeded");
    const { redrives } = await json("runs", "show", String(again.run));
    expect((await ask("runs", "show", String(redrives))).stdout).toContain(`redriven as run ${again.run}`);
    expect((await json("dead", "list")).letters).toBe(0);
    await whole.end("SIGTERM");

    const rerun = await ask("runs", "rerun", "--task", "order", "--state", "succeeded", "--since", "1h", "--wait");
    expect([rerun.code, rerun.stdout]).toEqual([0, expect.stringMatching(/^operation \d+ done: 3 of 3 done$/m)]);
    const one = await ask("runs", "rerun", String(again.run));
    expect([one.code, one.stdout]).toEqual([0, expect.stringMatching(/^run \d+ runs again as \d+\n$/)]);
    expect(await code("runs", "rerun", String(again.run), "--task", "order")).toEqual([2, "USAGE"]);
    const cancel = await ask("runs", "cancel", "--task", "order", "--wait");
    expect([cancel.code, cancel.stdout]).toEqual([0, expect.stringMatching(/4 of 4 done/)]);
    expect((await ask("operations", "list")).stdout).toMatch(/^ +\d+ +cancel +done +4\/4 .* task order$/m);
    expect(await code("operations", "stop", String(operation))).toEqual([1, "OPERATION_STATE"]);
  });

  it("pause and resume matching tasks, ask before large changes, and begin later if no node runs", async () => {
    await (await dev("no")).end("SIGTERM");
    expect((await ask("tasks", "pause", "--matching", "eu-*", "--dry-run")).stdout).toBe(
      "2 tasks to pause\n  eu-a\n  eu-b\n",
    );
    expect(await json("tasks", "pause", "--matching", "eu-*", "--wait", "--reason", "closed")).toMatchObject({
      state: "done",
      done: 2,
    });
    expect((await json("tasks", "list")).filter(({ paused }: { paused: unknown }) => paused)).toHaveLength(2);
    const begun = await ask("tasks", "resume", "--all");
    expect(begun.stderr).toContain("no node leads");
    const [, id = ""] = /^operation (\d+) has begun/m.exec(begun.stdout) ?? [];
    expect((await ask("operations", "wait", id)).stdout).toBe(`operation ${id} done: 2 of 2 done\n`);
    // A backfill of two weeks of slots at one per minute needs a confirmation, and there is no terminal to ask for it.
    await ask("tasks", "edit", "eu-a", "--set", "schedule=* * * * *");
    const range = ["--from", "14d", "--to", "1h"];
    expect(await code("tasks", "backfill", "eu-a", ...range)).toEqual([2, "CONFIRMATION_NEEDED"]);
    expect(await code("tasks", "backfill", "eu-a", "--from", "1h", "--to", "2h")).toEqual([2, "OPTION_INVALID"]);
    const filled = await json("tasks", "backfill", "eu-a", "--from", "3h", "--to", "2h", "--wait", "--yes");
    expect(filled).toMatchObject({ kind: "backfill", state: "done", failed: 0 });
    expect(filled.done).toBeGreaterThanOrEqual(59);
  });

  it("continue when the node that runs them is killed, without repeating anything", async () => {
    await (await dev("no")).end("SIGTERM");
    await ask("tasks", "edit", "eu-b", "--set", "schedule=* * * * *");
    const first = start(["server", ...here(), "--name", "first"]);
    await first.says(/"server is ready"/);
    const { operation, total } = await json(
      "tasks",
      "backfill",
      "eu-b",
      "--from",
      "4h",
      "--to",
      "2h",
      "--rate",
      "30/s",
    );
    const client = new pg.Client(url);
    await client.connect();
    try {
      const look = async () =>
        (
          await client.query(
            `select done::int, passed::int, failed::int, state from ${schema}.operation where id = $1`,
            [operation],
          )
        ).rows[0];
      await until(async () => (await look()).done >= 30);
      const second = start(["server", ...here(), "--name", "second"]);
      await first.end("SIGKILL");
      await second.says(/"server is ready"/);
      await until(async () => (await look()).state !== "running");
      expect(await look()).toEqual({ done: total, passed: 0, failed: 0, state: "done" });
      const { rows } = await client.query(
        `select count(*)::int as runs, count(distinct slot_ms)::int as slots from ${schema}.run where task_id = (select id from ${schema}.task where name = 'eu-b') and slot_ms < $1`,
        [Date.now() - 3_600_000],
      );
      expect(rows[0]).toEqual({ runs: total, slots: total });
    } finally {
      await client.end();
    }
  });
});

describe("calendars", () => {
  it("are stored from lists and ICS files, affect the next fires, and cannot be removed while in use", async () => {
    await (await dev("no")).end("SIGTERM");
    const year = new Date().getUTCFullYear() + 1;
    const ics = `BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:19700101\r\nRRULE:FREQ=YEARLY\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n`;
    await file("holidays.ics", ics);
    const set = [
      "calendars",
      "set",
      "de",
      "--ics",
      "holidays.ics",
      "--days",
      `${year}-01-02`,
      "--zone",
      "Europe/Berlin",
    ];
    const { calendar, changed } = await json(...set);
    expect([changed, calendar.version, calendar.weekend]).toEqual([true, 1, [0, 6]]);
    expect(calendar.holidays).toEqual(expect.arrayContaining([`${year}-01-01`, `${year}-01-02`, `${year + 8}-01-01`]));
    expect((await ask("calendars", "show", "de")).stdout).toMatch(new RegExp(`^ +${year} +01-01 01-02$`, "m"));

    await ask(
      "tasks",
      "edit",
      "eu-a",
      "--set",
      'calendar={"name":"de"}',
      "--set",
      "schedule=0 9 1,2 1 *",
      "--set",
      "zone=Europe/Berlin",
    );
    const { slots } = await json("tasks", "next", "eu-a", "-n", "2");
    expect(slots.map(({ note }: { note: string }) => note)).toEqual(
      [1, 2].map((day) => `skipped: calendar de: ${year}-01-0${day} is a holiday`),
    );
    expect((await ask("calendars", "list")).stdout).toMatch(/^de +1 .* eu-a$/m);
    const two = ics
      .replace("FREQ=YEARLY", "FREQ=YEARLY;INTERVAL=1")
      .replace("END:VEVENT", "SUMMARY:New Year\r\nEND:VEVENT");
    await file("next.ics", two);
    const compared = await ask("calendars", "show", "de", "--compare", "next.ics", "--weekend", "");
    const [at, gone] = [`${year}-01-02 09:00`, `calendar de: ${year}-01-02 is a holiday`];
    expect(compared.stdout).toMatch(new RegExp(`removed +${year}-01-02 [A-Z][a-z][a-z]\n`));
    expect(compared.stdout).toMatch(/task +eu-a: 1 slot of a year ahead/);
    expect(compared.stdout).toMatch(new RegExp(`${at}.*: skipped: ${gone} → at its own time`));
    const shrinking = ["calendars", "set", "de", "--weekend", "fri", "--zone", "Europe/Berlin"] as const;
    expect(await code(...shrinking)).toEqual([2, "CALENDAR_SHRINKS"]);
    const again = await ask(...shrinking, "--yes");
    expect(again.stdout).toMatch(/^de is at version 2: .*\nplanned anew: eu-a$/m);
    expect(await json("calendars", "show", "de", "--version", "1")).toMatchObject({ version: 1, weekend: [0, 6] });
    expect(await code("calendars", "remove", "de")).toEqual([1, "CALENDAR_USED"]);
    expect((await ask("tasks", "revert", "eu-a")).code).toBe(0);
    expect((await ask("calendars", "remove", "de")).code).toBe(0);
    expect(await code("calendars", "show", "de")).toEqual([3, "CALENDAR_UNKNOWN"]);
    await file("odd.ics", ics.replace("FREQ=YEARLY", "RSCALE=HEBREW;FREQ=YEARLY"));
    const odd = await ask("calendars", "set", "odd", "--ics", "odd.ics");
    expect(odd.stderr).toMatch(/^odd\.ics:4: RRULE: RSCALE=HEBREW is not supported/m);
    expect((await json("calendars", "set", "odd", "--ics", "odd.ics")).notices).toContainEqual(
      expect.objectContaining({ file: "odd.ics", line: 4 }),
    );
    const strict = await ask("calendars", "set", "odd", "--ics", "odd.ics", "--strict");
    expect([strict.code, strict.stderr]).toEqual([2, expect.stringContaining("odd.ics: calendar: line 4, RRULE:")]);
    await file("broken.ics", "BEGIN:NOTHING");
    expect(await code("calendars", "set", "x", "--ics", "broken.ics")).toEqual([2, "CALENDAR_INVALID"]);
    expect(await code("calendars", "set", "x", "--ics", join(folder, "none.ics"))).toEqual([2, "FILE_INVALID"]);
  });
});
