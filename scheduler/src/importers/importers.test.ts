import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { nextSlots } from "../schedule.ts";
import { readWritten, writtenTask } from "../written-task.ts";
import { importBullmq } from "./bullmq.ts";
import type { Findings } from "./findings.ts";
import { importKubernetes } from "./kubernetes.ts";
import { importPgBoss } from "./pg-boss.ts";
import { importQuartz } from "./quartz.ts";
import { quartzCron } from "./quartz-cron.ts";
import { fromXxl } from "./xxl-job.ts";

const sample = (path: string) => ({
  path,
  text: readFileSync(new URL(`../../../examples/imports/${path}`, import.meta.url), "utf8"),
});
const utc = { zone: "UTC" };
const tasksOf = ({ tasks }: Findings) => Object.fromEntries(tasks.map(({ name, written }) => [name, written]));
const told = ({ remarks }: Findings, kind: string) =>
  remarks.filter((remark) => remark.kind === kind).map(({ source, message }) => `${source}: ${message}`);
/** What is written can be applied as it is. */
const readable = ({ tasks }: Findings) => {
  for (const { name, written } of tasks)
    expect(writtenTask(readWritten(name, structuredClone(written)))).toEqual(written);
};

describe("Quartz", () => {
  const found = importQuartz([sample("quartz.properties"), sample("quartz_data.xml")], utc);

  it("gives each trigger a task, with data of both, zone, misfire and recovery", () => {
    readable(found);
    const tasks = tasksOf(found);
    expect(Object.keys(tasks)).toEqual([
      ...["billing.SettleAccounts:weekday-morning", "billing.SettleAccounts:month-end", "Heartbeat:beat", "Rebuild"],
    ]);
    expect(tasks["billing.SettleAccounts:weekday-morning"]).toEqual({
      description: "Settles the day's accounts · Monday to Friday",
      schedule: { cron: "0 15 10 ? * MON-FRI", zone: "America/New_York" },
      slotPayload: { ledger: "eu", currency: "EUR & CHF" },
      priority: 7,
      misfire: { policy: "skip", after: "2m" },
    });
    expect(tasks["billing.SettleAccounts:month-end"]).toMatchObject({
      ...{ slotPayload: { ledger: "all" }, priority: 9, misfire: { policy: "fire_once" } },
    });
    expect(tasks["Heartbeat:beat"]).toEqual({
      schedule: { every: "10s", anchor: "2026-01-01T00:00:05.000Z" },
      ...{ misfire: { policy: "skip", after: "2m" }, onWorkerLost: "fail" },
    });
  });

  it("tells what is lost and what cannot be", () => {
    expect(told(found, "problem")).toEqual([
      "orphan: its job Nobody is not in these files",
      "Heartbeat:monthly: an interval in MONTH has no fixed length",
    ]);
    expect(told(found, "lost").map((text) => text.replace("billing.SettleAccounts:month-end: ", ""))).toEqual([
      "its end-time 2030-12-31T00:00:00: here it goes on",
      "its calendar bankHolidays, which is Java",
      "priority 50: 0 to 9 are possible",
    ]);
    expect(told(found, "note")).toContain("Heartbeat: runs the Java class com.example.ops.HeartbeatJob");
    expect(told(found, "note")).toContain(": Quartz ran 5 at once");
  });

  it.each([
    ["SMART_POLICY", "cron", "fire_once"],
    ["MISFIRE_INSTRUCTION_FIRE_ONCE_NOW", "cron", "fire_once"],
    ["2", "cron", "skip"],
    ["-1", "cron", "all"],
    ["", "simple", "skip"],
    ["MISFIRE_INSTRUCTION_FIRE_NOW", "simple", "fire_once"],
    ["MISFIRE_INSTRUCTION_RESCHEDULE_NEXT_WITH_REMAINING_COUNT", "simple", "skip"],
    ["MISFIRE_INSTRUCTION_RESCHEDULE_NOW_WITH_EXISTING_REPEAT_COUNT", "simple", "fire_once"],
    ["5", "simple", "skip"],
  ])("misfire instruction %s of a %s trigger is %s", (instruction, kind, policy) => {
    const when =
      kind === "cron"
        ? "<cron-expression>0 0 12 * * ?</cron-expression>"
        : "<repeat-count>-1</repeat-count><repeat-interval>1000</repeat-interval>";
    const said = instruction === "" ? "" : `<misfire-instruction>${instruction}</misfire-instruction>`;
    const text = `<schedule><job><name>a</name></job><trigger><${kind}><job-name>a</job-name>${said}${when}</${kind}></trigger></schedule>`;
    const [task] = importQuartz([{ path: "a.xml", text }], utc).tasks;
    expect(task?.written.misfire).toMatchObject({ policy });
  });

  it.each([
    ["2026-07-01T09:00:00", "", "2026-07-01T07:00:00.000Z"],
    ["2026-01-01T09:00:00.5", "", "2026-01-01T08:00:00.500Z"],
    ["2026-03-29T02:30:00", "", "2026-03-29T01:30:00.000Z"],
    ["2026-07-01T09:00:00", "Asia/Tokyo", "2026-07-01T00:00:00.000Z"],
    ["2026-07-01T09:00:00Z", "", "2026-07-01T09:00:00.000Z"],
    ["2026-07-01T09:00:00+01:00", "", "2026-07-01T08:00:00.000Z"],
    ["2026-02-30T09:00:00", "", undefined],
    ["2026-07-01", "", undefined],
    ["9026-07-01T09:00:00", "", undefined],
    ["tomorrow", "", undefined],
    ["2026-07-01T09:00:00", "Mars/Base", undefined],
  ])("start-time %s in %s, on a machine in Berlin, is %s", (start, zone, instant) => {
    const said = `<job-name>a</job-name><start-time>${start}</start-time>${zone && `<time-zone>${zone}</time-zone>`}`;
    const repeats = "<repeat-count>-1</repeat-count><repeat-interval>60000</repeat-interval>";
    const triggers = [`<simple>${said}</simple>`, `<simple>${said}${repeats}</simple>`];
    for (const [at, trigger] of triggers.entries()) {
      const text = `<schedule><job><name>a</name></job><trigger>${trigger}</trigger></schedule>`;
      const found = importQuartz([{ path: "a.xml", text }], { zone: "Europe/Berlin" });
      const ours = at === 0 ? { at: instant } : { every: "1m", anchor: instant };
      expect(tasksOf(found).a?.schedule).toEqual(instant === undefined ? undefined : ours);
      expect(told(found, "problem")).toHaveLength(instant === undefined ? 1 : 0);
      const guessed = instant !== undefined && !/Z|\+/.test(start);
      const note = `a: its start-time ${start} has no offset, so it is taken to be in ${zone || "Europe/Berlin"}`;
      expect(told(found, "note").filter((text) => text.includes("start-time"))).toEqual(guessed ? [note] : []);
    }
  });

  it("reads nothing but the text: no entity, no file, nothing half-closed", () => {
    const hostile =
      '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><schedule><job><name>&f;</name></job></schedule>';
    for (const text of [hostile, "<schedule><job>", "", "{}", "<html/>"])
      expect(told(importQuartz([{ path: "a.xml", text }], utc), "problem"), text).not.toEqual([]);
  });
});

describe("Quartz's cron", () => {
  it.each([
    ["0 0 12 ? * 1", "0 0 12 ? * SUN"],
    ["0 0 12 ? * 2-6", "0 0 12 ? * MON-FRI"],
    ["0 0 12 ? * 6L", "0 0 12 ? * FRIL"],
    ["0 0 12 ? * 6#3", "0 0 12 ? * FRI#3"],
    ["0 0 12 ? * L", "0 0 12 ? * SAT"],
    ["0 0 12 ? * 1/2", "0 0 12 ? * SUN,TUE,THU,SAT"],
    ["0 0 12 ? * 2/2", "0 0 12 ? * MON,WED,FRI"],
    ["0 0 12 ? * 2-6/2", "0 0 12 ? * MON,WED,FRI"],
    ["0 0 12 ? * 6-2/3", "0 0 12 ? * FRI,MON"],
    ["0 0 12 ? * */3", "0 0 12 ? * SUN,WED,SAT"],
    ["0 0 12 ? * mon,7", "0 0 12 ? * MON,SAT"],
    ["0 0 12 LW * ? 2027", "0 0 12 LW * ? 2027"],
    ["0 0 12 ? * 9", "0 0 12 ? * 9"],
    ["0 12 * * 2", "0 12 * * 2"],
  ])("%s is %s", (theirs, ours) => {
    expect(quartzCron(theirs)).toBe(ours);
  });
});

describe("XXL-JOB", () => {
  const found = fromXxl([sample("xxl_job_info.json")], { zone: "Asia/Shanghai" });

  it("carries schedule, route, block and misfire strategy, timeout, retries, script and children over", () => {
    readable(found);
    expect(tasksOf(found)).toMatchObject({
      settleHandler: {
        ...{
          group: "billing-executor",
          schedule: { cron: "0 0 2 ? * MON-FRI", zone: "Asia/Shanghai" },
          slotPayload: "eu,us",
        },
        ...{
          timeout: "2h",
          retry: { attempts: 4, backoff: "fixed", delay: "0s", jitter: 0 },
          overlap: "queue",
          route: "sticky",
        },
        misfire: { policy: "fire_once", after: "5s" },
      },
      reportHandler: { after: "settleHandler", overlap: "skip", route: "round-robin" },
      pingHandler: { schedule: { every: "30s" }, route: "broadcast" },
      "xxl-4": {
        overlap: "replace",
        command: { argv: ["/bin/bash", "-c", '#!/bin/bash\nrm -rf -- "$1"\n', "bash", "/tmp/old"] },
      },
      "xxl-5": { schedule: { cron: "0 0 12 ? * SUN#2" } },
    });
  });

  it("lets what stood still stand still, and keeps its schedule in a remark", () => {
    expect(tasksOf(found)["xxl-4"]).not.toHaveProperty("schedule");
    expect(found.tasks.find(({ name }) => name === "xxl-4")?.comment).toContain('"cron":"0 30 3 1/5 * ?"');
  });

  it("tells what is lost and what cannot be", () => {
    expect(told(found, "problem")).toEqual([expect.stringMatching(/^6 Broken: .*hour: "25" is out of range/)]);
    expect(told(found, "lost")).toEqual(
      expect.arrayContaining([
        "1 Settle accounts: alarm_email ops@example.com",
        "3 Ping: COVER_EARLY with SHARDING_BROADCAST: the parts of several slots may overlap",
        "4 Clean up: route FIRST: whichever worker asks first runs it",
        "5 Groovy: its GLUE_GROOVY source cannot be run here",
      ]),
    );
  });

  it("reads the cron of rows as they were before 2.3", () => {
    const row = '"id":1,"job_cron":"0 0 2 * * ?","executor_handler":"h","glue_type":"BEAN","trigger_status":1';
    const before = fromXxl([{ path: "x.json", text: `[{${row}}]` }], utc);
    expect(tasksOf(before).h).toMatchObject({
      schedule: { cron: "0 0 2 * * ?", zone: "UTC" },
      misfire: { policy: "skip", after: "5s" },
    });
  });

  it("runs the whole of a shell script, also after a program that reads standard input", () => {
    const script = 'cat\necho "$# $1"\nexit 3\n';
    const row = { id: 1, glue_type: "GLUE_SHELL", glue_source: script, executor_param: "-x a", schedule_type: "NONE" };
    const [task] = fromXxl([{ path: "x.json", text: JSON.stringify([row]) }], utc).tasks;
    const { argv: [program = "", ...args] = [], stdin = "" } = readWritten("xxl-1", task?.written).command ?? {};
    const { status, stdout } = spawnSync(program, args, {
      input: stdin,
      encoding: "utf8",
    });
    expect([status, stdout]).toEqual([3, "1 -x a\n"]);
  });

  it.each([
    [131_071, 1],
    [131_072, 0],
  ])("a shell script of %s bytes is %s task: no argument is longer", (bytes, tasks) => {
    const row = { id: 1, glue_type: "GLUE_SHELL", glue_source: "#".repeat(bytes), schedule_type: "NONE" };
    const found = fromXxl([{ path: "x.json", text: JSON.stringify([row]) }], utc);
    expect(found.tasks).toHaveLength(tasks);
    expect(told(found, "problem")).toHaveLength(1 - tasks);
  });

  it("reads the API's names, several rows of one handler, and a child with a schedule of its own", () => {
    const row = '"jobGroup":1,"scheduleConf":"0 0 1 * * ?","executorHandler":"h","glueType":"BEAN","triggerStatus":1';
    const text = [
      `{"id":1,${row},"scheduleType":"CRON","childJobId":"2"}`,
      `{"id":2,${row},"scheduleType":"CRON","executorRouteStrategy":"TEA"}`,
      `{"id":3,${row},"scheduleType":"MOON"}`,
    ].join("\n");
    const more = fromXxl([{ path: "x.json", text }], utc);
    expect(Object.keys(tasksOf(more))).toEqual(["h.1", "h.2"]);
    expect(told(more, "lost")).toEqual(
      expect.arrayContaining([expect.stringContaining("route TEA"), expect.stringContaining("it comes after h.1")]),
    );
    expect(told(more, "problem")).toEqual(["3: schedule_type MOON is not known"]);
  });
});

describe("Kubernetes", () => {
  const found = importKubernetes([sample("cronjobs.yaml")], utc);

  it("carries schedule and zone, concurrency, deadlines, tries and the one container's command over", () => {
    readable(found);
    const tasks = tasksOf(found);
    expect(tasks["storage/nightly-backup"]).toEqual({
      schedule: { cron: "30 2 * * *", zone: "Europe/Berlin" },
      ...{ timeout: "1h", retry: { attempts: 3, delay: "10s", maxDelay: "6m" }, overlap: "skip" },
      misfire: { policy: "skip", after: "3m20s" },
      command: {
        argv: ["/usr/local/bin/backup", "--target", "s3://bucket", "--keep", "7"],
        ...{ env: { LANG: "C.UTF-8" }, cwd: "/var/lib" },
      },
      labels: { disk: "ssd" },
    });
    expect(tasks.hello, "suspended").toEqual({ retry: { attempts: 7, delay: "10s", maxDelay: "6m" } });
    expect(tasks.crunch).toMatchObject({ schedule: { cron: "@daily", zone: "Asia/Tokyo" }, route: { shards: 5 } });
  });

  it("tells what is lost and what cannot be", () => {
    expect(told(found, "problem")).toEqual([expect.stringContaining("never: cron")]);
    expect(told(found, "note")).toContain("ConfigMap backup-settings: is no CronJob, and was passed over");
    expect(told(found, "lost")).toEqual(
      expect.arrayContaining([
        "storage/nightly-backup: serviceAccountName",
        "storage/nightly-backup: env SECRET, which comes from a secret, a config map or the pod",
        "hello: the program of its image busybox:1.28, which the manifest does not name",
        "crunch: initContainers",
      ]),
    );
    expect(told(importKubernetes([{ path: "x.yaml", text: "a: [b" }], utc), "problem")).toEqual([
      expect.stringContaining("is not YAML"),
    ]);
  });

  it("leaves out variables that would have each run refused, and says so; a shell may have them", () => {
    const cronOf = (program: string) =>
      `kind: CronJob\nmetadata: { name: a }\nspec: { schedule: "@daily", jobTemplate: { spec: { template: { spec: { containers: [{ command: [${program}], env: [{ name: PYTHONUNBUFFERED, value: "1" }, { name: TARGET, value: eu }] }] } } } } }`;
    const of = (program: string) => importKubernetes([{ path: "x.yaml", text: cronOf(program) }], utc);
    expect(tasksOf(of("python3")).a?.command).toEqual({ argv: ["python3"], env: { TARGET: "eu" } });
    expect(told(of("python3"), "lost")).toContainEqual(expect.stringContaining("env PYTHONUNBUFFERED, which can make"));
    expect(tasksOf(of("/bin/sh")).a).toMatchObject({ command: { env: { PYTHONUNBUFFERED: "1", TARGET: "eu" } } });
  });

  it("reads @every, and says what Indexed and Forbid do together", () => {
    const text = `kind: CronJob\nmetadata: { name: a }\nspec: { schedule: "@every 1h30m", concurrencyPolicy: Forbid, jobTemplate: { spec: { completions: 2, completionMode: Indexed, template: { spec: { containers: [{ command: [a] }] } } } } }`;
    const every = importKubernetes([{ path: "x.yaml", text }], utc);
    expect(tasksOf(every).a).toMatchObject({ schedule: { every: "1h30m" }, overlap: "skip" });
    expect(told(every, "lost")).toContainEqual(expect.stringContaining("2 indexed completions"));
  });
});

describe("a star with a step in a day field, beside another day field", () => {
  it.each([
    ["0 0 */2 * 1", "0 0 1-31/2 * 1"],
    ["0 0 1 * */2", "0 0 1 * 0-6/2"],
    ["0 0 */2,5 * */3", "0 0 1-31/2,5 * 0-6/3"],
    ["0 0 */2 * *", "0 0 */2 * *"],
    ["0 0 ? * */2", "0 0 ? * */2"],
    ["0 0 */2 * */1", "0 0 */2 * */1"],
    ["0 0 */2,* * 1", "0 0 */2,* * 1"],
    ["*/5 */2 3 */4 1", "*/5 */2 3 */4 1"],
    ["@daily", "@daily"],
  ])("%s is %s, for Kubernetes, BullMQ and pg-boss", (theirs, ours) => {
    const manifest = `kind: CronJob\nmetadata: { name: a }\nspec: { schedule: "${theirs}", jobTemplate: {} }`;
    const found = [
      importKubernetes([{ path: "a.yaml", text: manifest }], utc),
      importBullmq([{ path: "a.json", text: JSON.stringify([{ key: "a", pattern: theirs, tz: "UTC" }]) }], utc),
      importPgBoss([{ path: "a.json", text: JSON.stringify([{ name: "a", cron: theirs }]) }], utc),
    ];
    for (const each of found) expect(tasksOf(each).a?.schedule).toEqual({ cron: ours, zone: "UTC" });
  });

  it("with seconds too: on odd days, and on Mondays", () => {
    const text = JSON.stringify([{ key: "a", pattern: "0 0 0 */2 * 1", tz: "UTC" }]);
    const written = tasksOf(importBullmq([{ path: "a.json", text }], utc)).a;
    const slots = nextSlots(readWritten("a", written).schedule, Date.UTC(2026, 5, 30), 5);
    // The 6th of July 2026 is a Monday.
    expect(slots.map((slot) => new Date(slot).getUTCDate())).toEqual([1, 3, 5, 6, 7]);
  });
});

describe("BullMQ", () => {
  const found = importBullmq([sample("bullmq-schedulers.json")], utc);

  it("carries schedulers of several queues over, old ones too", () => {
    readable(found);
    expect(tasksOf(found)).toEqual({
      "daily-digest": {
        ...{
          group: "mail",
          schedule: { cron: "0 30 7 * * 1-5", zone: "America/New_York" },
          slotPayload: { audience: "all" },
        },
        retry: { attempts: 5, delay: "3s", jitter: 0 },
      },
      "poll-inbox": {
        ...{ group: "mail", schedule: { every: "1m", anchor: "1970-01-01T00:00:12.345Z" }, slotPayload: {} },
        retry: { attempts: 3, backoff: "fixed", jitter: 0 },
      },
      cleanup: { group: "legacy", schedule: { cron: "0 4 * * *", zone: "Europe/Paris" } },
      sweep: { group: "legacy", schedule: { every: "5s" } },
    });
  });

  it("tells what is lost and what cannot be", () => {
    expect(told(found, "problem")).toEqual(["odd: it has neither a pattern nor every"]);
    expect(told(found, "lost")).toEqual([
      "daily-digest: its option removeOnComplete: true",
      "daily-digest: its option priority: 2",
      "poll-inbox: its limit of 100 times, of which it had 40",
      "cleanup: its endDate 2030-01-01T00:00:00.000Z",
    ]);
    expect(told(importBullmq([{ path: "x", text: "[" }], utc), "problem")).toEqual([
      expect.stringContaining("is not JSON"),
    ]);
  });
});

describe("pg-boss", () => {
  const found = importPgBoss([sample("pg-boss-schedules.json")], utc);

  it("carries zone, data, retries, expiry and what is done about missed ones over", () => {
    readable(found);
    expect(tasksOf(found)).toEqual({
      "notification-abc": {
        ...{ schedule: { cron: "0 3 * * *", zone: "America/Chicago" }, slotPayload: { kind: "digest" }, timeout: "2m" },
        ...{ retry: { attempts: 5, delay: "5s", maxDelay: "10m" }, misfire: { policy: "skip", after: "1m" } },
      },
      "report:us": {
        ...{ schedule: { cron: "0 6 * * *", zone: "UTC" }, slotPayload: { region: "us" }, timeout: "15m", priority: 8 },
        ...{
          retry: { attempts: 3, backoff: "fixed", delay: "0s", jitter: 0 },
          misfire: { policy: "fire_once", after: "1m" },
        },
      },
      "report:eu": {
        schedule: { cron: "0 18 * * *", zone: "UTC" },
        timeout: "15m",
        misfire: { policy: "skip", after: "1m" },
      },
    });
  });

  it("tells what is lost, what is assumed and what cannot be", () => {
    expect(told(found, "problem")).toEqual(["workflow:w1: its recurrence is of the kind rrule"]);
    expect(told(found, "lost")).toEqual([
      'notification-abc: its option singletonKey: "abc"',
      'report:eu: its option deadLetter: "failed"',
    ]);
    expect(told(found, "note")).toContainEqual(expect.stringContaining("2 retries and 15 minutes are taken"));
  });

  it("names what cannot be a name, or is taken, otherwise", () => {
    const rows = ["a b", "a-b", "!", ""].map((name) => ({ name, cron: "0 3 * * *" }));
    const odd = importPgBoss([{ path: "x", text: JSON.stringify(rows) }], utc);
    expect(odd.tasks.map(({ name }) => name)).toEqual(["a-b", "a-b-2", "task", "task-2"]);
    expect(told(odd, "note").filter((text) => text.includes("is called"))).toHaveLength(4);
  });
});
