/** Takes about a minute: every step starts a process, and the steps of a test build on each other. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ask, type Ended, file, folder, here, json, start } from "./process.ts";

const yaml = (timeout: string, more = "") => `bundle: billing
tasks:
  settle:
    schedule: { cron: "0 2 * * *", zone: Asia/Shanghai }
    timeout: ${timeout}
  beat: { schedule: { every: 5m } }
${more}`;

describe("apply, diff, export", () => {
  it("plan, apply, drift, prune: exit codes and output", async () => {
    await file("billing.yaml", yaml("1h", "  old: {}\n"));
    const first = await ask("apply", "billing.yaml", "--reason", "begin");
    expect([first.code, first.stderr]).toEqual([0, ""]);
    expect(first.stdout).toMatch(/^\+ settle {2,}at 02:00 every day, Asia\/Shanghai$/m);
    expect(first.stdout).toMatch(/^bundle billing: 3 to create; plan [\da-f]{12}\n3 created$/m);
    expect((await ask("diff", "billing.yaml")).code).toBe(0);

    expect((await ask("tasks", "edit", "beat", "--set", "priority=8", "--reason", "hurry")).code).toBe(0);
    await file("billing.yaml", yaml("2h"));
    const diff = await ask("diff", "billing.yaml", "--prune");
    expect(diff.code).toBe(2);
    expect(diff.stdout).toMatch(/^~ settle {2,}version 1, by /m);
    expect(diff.stdout).toMatch(/^ {4}timeout: 1h → 2h$/m);
    expect(diff.stdout).toMatch(/^= beat {2,}version 2, by .* \(hurry\)$/m);
    expect(diff.stdout).toMatch(/^ {4}edited by hand: priority 5 → 8; it stays so$/m);
    expect(diff.stdout).toMatch(/^- old /m);
    const [, id = ""] = /plan ([\da-f]{12})/.exec(diff.stdout) ?? [];

    const other = await ask("apply", "billing.yaml", "--prune", "--expect-plan", "000000000000");
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("TASK_STALE")]);
    const applied = await json("apply", "billing.yaml", "--prune", "--expect-plan", id, "--author", "ci");
    expect(applied.applied).toEqual([
      { task: "settle", kind: "change", version: 2 },
      { task: "old", kind: "remove", version: 1, ended: 0 },
    ]);
    expect((await json("tasks", "show", "settle")).versions).toMatchObject([
      { version: 2, author: "ci", parts: ["timeoutMs"] },
      { version: 1, reason: "begin" },
    ]);

    const over = await ask("apply", "billing.yaml", "--plan", "--overwrite-edits");
    expect([over.code, over.stdout]).toEqual([2, expect.stringContaining("priority 5 → 8; it is put back")]);
    const out = await ask("export", "--bundle", "billing", "--output", "out.yaml");
    expect([out.code, out.stderr]).toEqual([0, expect.stringContaining("2 tasks written to out.yaml")]);
    expect(await readFile(join(folder, "out.yaml"), "utf8")).toContain("# edited by hand: priority\n");
    const inJson = await ask("export", "beat", "--json", "--output", "out.json");
    expect([inJson.code, inJson.stdout]).toEqual([0, ""]);
    expect(Object.keys(JSON.parse(await readFile(join(folder, "out.json"), "utf8")).tasks)).toEqual(["beat"]);
    expect(await ask("export", "--bundle", "biling")).toMatchObject({ code: 3, stdout: "" });
    expect((await ask("diff", "out.yaml")).stdout).toMatch(/priority 5 → 8; the files say so by now$/m);
  });

  it("modules, several files, mistakes with their lines, and ownership", async () => {
    await file(
      "more.ts",
      `import { every, type TaskOptions } from "carillon";\nexport const bundle = "m";\nexport const tasks: Record<string, TaskOptions> = { tick: { schedule: every("1m") } };\n`,
    );
    await file("wrong.yaml", 'tasks:\n  tick: {}\n  bad:\n    retry: { attempts: 0 }\n  "no zone": {}\n');
    const wrong = await ask("apply", "more.ts", "wrong.yaml");
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toMatch(
      /^wrong\.yaml:4: TASK_INVALID: tasks\.bad\.retry\.attempts: retry\.attempts cannot be 0\n {2}hint: /m,
    );
    expect(wrong.stderr).toMatch(/^wrong\.yaml:2: TASK_DUPLICATE: tasks\.tick: the task tick is in more\.ts already$/m);
    await file("nameless.yaml", "tasks:\n  x: {}\n");
    const refused = [
      ["diff wrong.yaml", 1, ""],
      ["diff wrong.yaml --nonsense", 1, "USAGE"],
      ["apply tasks.ts", 2, "exports a Carillon"],
      ["apply nameless.yaml --prune", 2, "--prune needs a bundle"],
    ] as const;
    const told = await Promise.all(refused.map(([line]) => ask(...line.split(" "))));
    expect(told.map(({ code }) => code)).toEqual(refused.map(([, code]) => code));
    for (const [at, [, , text]] of refused.entries()) expect(told[at]?.stderr).toContain(text);
    expect((await ask("apply", "more.ts", "--yes")).code).toBe(0);
    await file("thief.yaml", "bundle: thief\ntasks:\n  tick: {}\n");
    const thief = await ask("apply", "thief.yaml");
    expect([thief.code, thief.stdout]).toEqual([1, expect.stringContaining("it belongs to the bundle m")]);
    const [tick, nobody] = await Promise.all([ask("export", "tick"), ask("export", "nobody")]);
    expect([tick?.stdout, nobody?.code]).toEqual([expect.stringContaining("schedule: { every: 1m }"), 3]);
  });

  it("alarm rules and hooks beside tasks: plan, edits by hand, export, prune", async () => {
    const beside = (more: number) => `bundle: beside
tasks: { deploy: {} }
alarms:
  queue: { kind: queue, more: ${more}, channels: [] }
hooks:
  bank: { scheme: bearer, secret: bank, task: deploy }
`;
    await file("beside.yaml", beside(5));
    const first = await ask("apply", "beside.yaml", "--reason", "begin");
    expect(first.stdout).toMatch(/^\+ alarm rule queue {2}more than 5 due runs of a task wait$/m);
    expect(first.stdout).toMatch(/^\+ hook bank {9}runs deploy$/m);
    expect(first.stdout).toMatch(/^! hook bank: SECRET_FORBIDDEN:/m);
    expect([first.code, first.stdout]).toEqual([1, expect.stringContaining("2 created, 1 not done")]);
    await file("queue.yaml", "kind: queue\nmore: 7\nchannels: []\n");
    expect((await ask("alarms", "rules", "set", "queue", "queue.yaml")).code).toBe(0);
    await file("beside.yaml", `${beside(5).split("hooks:")[0]}hooks:\n`);
    const edited = await ask("diff", "beside.yaml");
    expect([edited.code, edited.stdout]).toEqual([
      0,
      expect.stringContaining("    edited by hand: more 5 → 7; it stays so\n"),
    ]);
    expect((await ask("alarms", "rules", "show", "queue")).stdout).toMatch(/^ {2}bundle +beside$/m);
    const [whole, exported] = await Promise.all([json("export", "--bundle", "beside"), ask("export")]);
    expect(whole.alarms).toEqual({ queue: { kind: "queue", more: 7, channels: [] } });
    expect(exported?.stdout).toMatch(/^alarms:\n {2}queue:\n {4}kind: queue$/m);
    await file("twice.yaml", "alarms: { queue: { kind: ended } }\n");
    expect((await ask("diff", "beside.yaml", "twice.yaml")).stderr).toMatch(
      /^twice\.yaml:1: FILE_INVALID: alarms\.queue: the alarm rule queue is in beside\.yaml:4 already$/m,
    );
    await file("beside.yaml", "bundle: beside\ntasks: { deploy: {} }\n");
    expect((await ask("diff", "beside.yaml")).stderr).toContain("without --prune: alarm rule queue");
    const pruned = await json("apply", "beside.yaml", "--prune");
    expect(pruned.appliedItems).toEqual([{ item: "alarm", name: "queue", kind: "remove", version: 2 }]);
  });

  it("completes even if its output is not read", async () => {
    await file("many.yaml", `tasks:\n${Array.from({ length: 500 }, (_, n) => `  t${n}: {}\n`).join("")}`);
    const applying = start(["apply", "many.yaml", ...here()]);
    applying.unread("stdout");
    expect((await applying.ended()).code).toBe(0);
    expect(await json("tasks", "list")).toHaveLength(500);
  });

  it("does nothing after Ctrl-C or Ctrl-D, or if --json prevents the confirmation", async () => {
    await file("two.yaml", "tasks:\n  two: {}\n");
    for (const [key, code] of [
      ["\u0003", 130],
      ["\u0004", 1],
    ] as const) {
      const asked = start(["apply", "two.yaml", ...here()], { columns: 100 });
      await asked.says(/Go on\?/);
      asked.type(key);
      const ended = await asked.ended();
      expect([ended.code, ended.stdout]).toEqual([code, expect.stringContaining("nothing was done")]);
      expect(ended.stdout).not.toContain("BUG");
    }
    const json = await start(["apply", "two.yaml", "--json", ...here()], { columns: 100 }).ended();
    expect([json.code, json.stdout]).toEqual([2, expect.stringContaining("CONFIRMATION_NEEDED")]);
    expect(JSON.parse((await ask("tasks", "list", "--json")).stdout)).toEqual([]);
  });

  it("asks for confirmation on a terminal, and refuses tasks changed meanwhile", async () => {
    await file("one.yaml", "tasks:\n  one: { priority: 1 }\n");
    expect((await ask("apply", "one.yaml")).code).toBe(0);
    await file("one.yaml", "tasks:\n  one: { priority: 2 }\n");
    const asked = start(["apply", "one.yaml", ...here()], { columns: 100 });
    await asked.says(/Go on\?/);
    expect((await ask("tasks", "edit", "one", "--set", "timeout=1m")).code).toBe(0);
    asked.type("y\n");
    expect((await asked.ended()).code).toBe(1);
    expect(asked.stdout).toMatch(/TASK_STALE:.* task one is at version 2/);
  });
});

describe("import", () => {
  it("writes a file that apply reads, and a report beside it", async () => {
    const sample = (name: string) => fileURLToPath(new URL(`../../../examples/imports/${name}`, import.meta.url));
    await file("crontab", "0 2 * * * /usr/bin/backup\n*/5 * * * * a | b\n");
    const [pgBoss, kubernetes, crontab, none] = (await Promise.all([
      ask("import", "pg-boss", sample("pg-boss-schedules.json"), "--bundle", "old", "--output", "old.yaml"),
      json("import", "kubernetes", sample("cronjobs.yaml"), "--zone", "Asia/Tokyo"),
      ask("import", "crontab", "crontab", "--zone", "UTC", "--output", "-"),
      ask("import", "quartz", "nowhere.xml"),
    ])) as [Ended, { tasks: Record<string, object> }, Ended, Ended];
    expect([pgBoss.code, pgBoss.stdout]).toEqual([1, ""]);
    expect(pgBoss.stderr).toMatch(/^lost: report:eu: its option deadLetter/m);
    expect(pgBoss.stderr).toMatch(
      /^not imported: workflow:w1: .*\n {2}hint: .*\n3 tasks, 2 things lost, 1 not imported$/m,
    );
    expect(Object.keys(kubernetes.tasks)).toEqual(["storage/nightly-backup", "hello", "crunch"]);
    expect([crontab.code, crontab.stdout]).toEqual([1, expect.stringContaining("  crontab-backup:\n")]);
    expect(crontab.stderr).toMatch(/^not imported: crontab:2: the command needs a shell/m);
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("FILE_INVALID")]);
    expect((await ask("apply", "old.yaml")).stdout).toMatch(/^bundle old: 3 to create; .*\n3 created$/m);
  });
});

describe("simulate, cron", () => {
  it("show what would fire for files and for the store, and convert words to crons and back", async () => {
    const zone = "America/New_York";
    await file(
      "sim.yaml",
      `tasks:\n  ny: { schedule: { cron: "30 2 * * *", zone: ${zone} } }\n  beat: { schedule: { every: 12h } }\n  slow: { schedule: { every: 1h, mode: delay } }\n`,
    );
    const span = ["--from", "2027-03-14T00:00:00Z", "--to", "2027-03-15T00:00:00Z"];
    expect((await ask("apply", "sim.yaml")).code).toBe(0);
    const [text, stored, words, back, refused, unquoted] = (await Promise.all([
      start(["simulate", "sim.yaml", ...span]).ended(),
      json("simulate", ...span),
      start(["cron", "every weekday at 9:30", "--zone", "Europe/Berlin", "--json"]).ended(),
      start(["cron", "0 9 * * 1-5", "-n", "2", "--zone", "UTC"]).ended(),
      start(["cron", "at", "9"]).ended(),
      start(["cron", "0", "9", "sim.yaml", "sim.yaml", "1-5"]).ended(),
    ])) as [Ended, Record<string, unknown>, Ended, Ended, Ended, Ended];
    expect(text.stdout).toMatch(/^2027-03-14 03:30:00 -04:00 +ny +02:30 does not exist: shifted by 1 h$/m);
    expect(text.stdout).toMatch(/^3 slots of 2 tasks$/m);
    expect(text.stderr).toContain("not shown: slow: its slots follow from the ends of its runs");
    expect(stored).toMatchObject({
      total: 3,
      collisions: [],
      fires: [{ task: "beat" }, { task: "ny", at: "2027-03-14T07:30:00.000Z" }, {}],
    });
    expect(JSON.parse(words.stdout)).toMatchObject({
      cron: "30 9 * * MON-FRI",
      zone: "Europe/Berlin",
      words: "at 09:30 on weekdays, Europe/Berlin",
    });
    expect(back.stdout).toMatch(/^0 9 \* \* 1-5\n {2}at 09:00 on weekdays, UTC\n {2}\d{4}-.*\n {2}\d{4}-.*\n$/);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringMatching(/at 9 could be two times\n {2}hint: Say "at 09:00" or "at 21:00"\./),
    ]);
    expect([unquoted.code, unquoted.stderr]).toEqual([2, expect.stringMatching(/names of files in it.*Quote it/)]);
  });
});
