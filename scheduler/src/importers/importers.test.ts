import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { now, past, readable, sample, tasksOf, told, utc } from "../../test/support/imports.ts";
import { nextSlots } from "../schedule/schedule.ts";
import { readWritten } from "../task/written.ts";
import { importBullmq } from "./bullmq.ts";
import { importKubernetes } from "./kubernetes.ts";
import { importPgBoss } from "./pg-boss.ts";
import { fromXxl } from "./xxl-job.ts";

describe("XXL-JOB", () => {
  const found = fromXxl([sample("xxl_job_info.json")], { ...utc, zone: "Asia/Shanghai" });

  it("imports schedule, route, block and misfire strategy, timeout, retries, script and children", () => {
    readable(found);
    expect(tasksOf(found)).toMatchObject({
      settleHandler: {
        group: "billing-executor",
        schedule: { cron: "0 0 2 ? * MON-FRI", zone: "Asia/Shanghai" },
        slotPayload: "eu,us",
        timeout: "2h",
        retry: { attempts: 4, backoff: "fixed", delay: "0s", jitter: 0 },
        overlap: "queue",
        route: "sticky",
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

  it("imports a stopped task without its schedule, and keeps the schedule in a remark", () => {
    expect(tasksOf(found)["xxl-4"]).not.toHaveProperty("schedule");
    expect(found.tasks.find(({ name }) => name === "xxl-4")?.comment).toContain('"cron":"0 30 3 1/5 * ?"');
  });

  it("reports lost fields, and entries that cannot be imported", () => {
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

  it("reads the cron of rows from before version 2.3", () => {
    const row = '"id":1,"job_cron":"0 0 2 * * ?","executor_handler":"h","glue_type":"BEAN","trigger_status":1';
    const before = fromXxl([{ path: "x.json", text: `[{${row}}]` }], utc);
    expect(tasksOf(before).h).toMatchObject({
      schedule: { cron: "0 0 2 * * ?", zone: "UTC" },
      misfire: { policy: "skip", after: "5s" },
    });
  });

  it("a run in an executor's queue waits as long as in XXL-JOB, whatever the misfire strategy", () => {
    const of = (block: string) => {
      const row = `"id":1,"job_cron":"0 0 2 * * ?","executor_handler":"h","glue_type":"BEAN","trigger_status":1,"misfire_strategy":"DO_NOTHING","executor_block_strategy":"${block}"`;
      return tasksOf(fromXxl([{ path: "x.json", text: `[{${row}}]` }], utc)).h;
    };
    expect(of("SERIAL_EXECUTION")).toMatchObject({ overlap: "queue", misfire: { policy: "skip", waiting: false } });
    expect(of("DISCARD_LATER")).toMatchObject({ overlap: "skip", misfire: { policy: "skip", after: "5s" } });
  });

  it("runs all of a shell script, even after a program that reads standard input", () => {
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
  ])("a shell script of %s bytes gives %s task, because arguments are limited in length", (bytes, tasks) => {
    const row = { id: 1, glue_type: "GLUE_SHELL", glue_source: "#".repeat(bytes), schedule_type: "NONE" };
    const found = fromXxl([{ path: "x.json", text: JSON.stringify([row]) }], utc);
    expect(found.tasks).toHaveLength(tasks);
    expect(told(found, "problem")).toHaveLength(1 - tasks);
  });

  const literal = (value: unknown) =>
    typeof value === "string" ? `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'` : String(value ?? null);
  const exported = JSON.parse(sample("xxl_job_info.json").text) as Record<string, Record<string, unknown>[]>;
  const [groupRows, infoRows] = ["xxl_job_group", "xxl_job_info"].map((table) => exported[table]);
  const insert = (table: string, rows: Record<string, unknown>[], columns: string[], named: boolean) =>
    `INSERT INTO \`${table}\` ${named ? `(${columns.join(", ")}) ` : ""}VALUES ${rows
      .map((row) => `(${columns.map((name) => literal(row[name])).join(",")})`)
      .join(",")};\n`;
  const since23 = Object.keys(infoRows?.[0] ?? {});

  it.each([
    ["named, in another order", since23.toReversed(), true],
    ["in the table's order", since23, false],
  ])("reads a dump in the same way as JSON: columns %s", (_, columns, named) => {
    const text = `-- MySQL dump\n${insert("xxl_job_group", groupRows ?? [], Object.keys(groupRows?.[0] ?? {}), named)}${insert("xxl_job_info", infoRows ?? [], columns, named)}`;
    const dumped = fromXxl([{ path: "x.sql", text }], { ...utc, zone: "Asia/Shanghai" });
    const { tasks, remarks } = fromXxl([sample("xxl_job_info.json")], { ...utc, zone: "Asia/Shanghai" });
    expect({ tasks: dumped.tasks, remarks: dumped.remarks }).toEqual({ tasks, remarks });
  });

  it("reads dumps from before version 2.3 by the table's column order, and reports an unreadable dump", () => {
    const old = `INSERT INTO xxl_job_info VALUES (7,1,'0 0 3 * * ?','night','2019-01-01','2019-01-01','li','','FIRST','nightly','','SERIAL_EXECUTION',0,0,'BEAN','','','2019-01-01','')`;
    for (const text of [old, `${old.slice(0, -1)},1,0,0)`]) {
      const [task] = fromXxl([{ path: "x.sql", text }], utc).tasks;
      expect(task).toMatchObject({ name: "nightly", written: { description: "night" } });
      expect(`${task?.comment} ${JSON.stringify(task?.written)}`).toContain('"cron":"0 0 3 * * ?"');
    }
    const odd = fromXxl([{ path: "x.sql", text: "INSERT INTO xxl_job_info VALUES (1, 2)" }], utc);
    expect(told(odd, "problem")).toEqual([
      ": x.sql: line 1: a row of xxl_job_info has 2 values, and its columns are not known",
    ]);
  });

  it("reads the description from the column name, as in version 3.4", () => {
    const row = { id: 1, name: "nightly report", executor_handler: "report", schedule_type: "CRON" };
    const rows = [{ ...row, schedule_conf: "0 0 3 * * ?", glue_type: "BEAN", trigger_status: 1 }];
    const found = fromXxl([{ path: "a.json", text: JSON.stringify(rows) }], utc);
    expect(tasksOf(found).report).toMatchObject({ description: "nightly report" });
    expect(told(found, "note")).toContain("1 nightly report: runs the handler report");
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

  it("imports schedule, zone, concurrency, deadlines, retries and the command of the only container", () => {
    readable(found);
    const tasks = tasksOf(found);
    expect(tasks["storage/nightly-backup"]).toEqual({
      schedule: { cron: "30 2 * * *", zone: "Europe/Berlin" },
      timeout: "1h",
      retry: { attempts: 3, delay: "10s", maxDelay: "6m" },
      overlap: "skip",
      misfire: { policy: "skip", after: "3m20s" },
      command: {
        argv: ["/usr/local/bin/backup", "--target", "s3://bucket", "--keep", "7"],
        env: { LANG: "C.UTF-8" },
        cwd: "/var/lib",
      },
      labels: { disk: "ssd" },
    });
    expect(tasks.hello, "suspended").toEqual({ retry: { attempts: 7, delay: "10s", maxDelay: "6m" } });
    expect(tasks.crunch).toMatchObject({ schedule: { cron: "@daily", zone: "Asia/Tokyo" }, route: { shards: 5 } });
  });

  it("reports lost fields, and entries that cannot be imported", () => {
    expect(told(found, "problem")).toEqual([expect.stringContaining("never: cron")]);
    expect(told(found, "note")).toContain("ConfigMap backup-settings: is no CronJob, and was passed over");
    expect(told(found, "lost")).toEqual(
      expect.arrayContaining([
        "storage/nightly-backup: serviceAccountName",
        "storage/nightly-backup: restartPolicy OnFailure",
        "storage/nightly-backup: env SECRET, which comes from a secret, a config map or the pod",
        "hello: the program of its image busybox:1.28, which the manifest does not name",
        "crunch: initContainers",
      ]),
    );
    expect(told(importKubernetes([{ path: "x.yaml", text: "a: [b" }], utc), "problem")).toEqual([
      expect.stringContaining("is not YAML"),
    ]);
  });

  it("reports how the pod restarts, resolves names and signs in, if the manifest differs from Kubernetes' usual values", () => {
    const lostOf = (pod: string) => {
      const spec = `{ schedule: "0 9 * * *", jobTemplate: { spec: { template: { spec: { containers: [], ${pod} } } } } }`;
      return told(
        importKubernetes([{ path: "x.yaml", text: `kind: CronJob\nmetadata: { name: a }\nspec: ${spec}` }], utc),
        "lost",
      );
    };
    const usual = ["a: 0 containers"];
    expect(lostOf("restartPolicy: Never, dnsPolicy: ClusterFirst")).toEqual(usual);
    expect(lostOf("restartPolicy: OnFailure, dnsPolicy: None, serviceAccount: backup")).toEqual([
      "a: serviceAccount",
      "a: restartPolicy OnFailure",
      "a: dnsPolicy None",
      ...usual,
    ]);
    expect(lostOf("serviceAccount: backup, serviceAccountName: backup")).toEqual(["a: serviceAccountName", ...usual]);
  });

  it("has one zone, and counts as without a zone only if its times depend on one", () => {
    const of = (spec: string) =>
      importKubernetes([{ path: "x.yaml", text: `kind: CronJob\nmetadata: { name: a }\nspec: { ${spec} }` }], utc);
    expect(told(of('schedule: "TZ=Asia/Tokyo 0 9 * * *", timeZone: Europe/Berlin'), "problem")).toEqual([
      "a: it names two zones: TZ=Asia/Tokyo and timeZone Europe/Berlin",
    ]);
    const unzoned = ": 1 without timeZone are taken to mean UTC";
    expect(told(of('schedule: "0 9 * * *"'), "note")).toContain(unzoned);
    for (const schedule of ["TZ=Asia/Tokyo 0 9 * * *", "@every 5m"])
      expect(told(of(`schedule: "${schedule}"`), "note"), schedule).not.toContain(unzoned);
    expect(tasksOf(of('schedule: "CRON_TZ=Asia/Tokyo 0 9 * * *"')).a).toMatchObject({
      schedule: { cron: "0 9 * * *", zone: "Asia/Tokyo" },
    });
  });

  it("reports which variables a worker must allow; a shell may have any variable", () => {
    const cronOf = (program: string) =>
      `kind: CronJob\nmetadata: { name: a }\nspec: { schedule: "@daily", jobTemplate: { spec: { template: { spec: { containers: [{ command: [${program}], env: [{ name: PYTHONUNBUFFERED, value: "1" }, { name: TARGET, value: eu }] }] } } } } }`;
    const of = (program: string) => importKubernetes([{ path: "x.yaml", text: cronOf(program) }], utc);
    const env = { PYTHONUNBUFFERED: "1", TARGET: "eu" };
    expect(tasksOf(of("python3")).a?.command).toEqual({ argv: ["python3"], env });
    expect(told(of("python3"), "lost").filter((one) => one.includes("env "))).toEqual(
      Object.keys(env).map((name) => expect.stringContaining(`env ${name}, which is not among`)),
    );
    expect(tasksOf(of("/bin/sh")).a).toMatchObject({ command: { env } });
    expect(told(of("/bin/sh"), "lost").filter((one) => one.includes("env "))).toEqual([]);
  });

  it.each([
    ["*/60 * * * *", "0 * * * *"],
    ["5-50/60 */25 * * *", "5 0 * * *"],
    ["0 0 */32 */12 */7", "0 0 1 1 0"],
  ])("a step beyond the end of its field, %s, becomes %s", (given, cron) => {
    const text = `kind: CronJob\nmetadata: { name: a }\nspec: { schedule: "${given}" }\n`;
    const found = importKubernetes([{ path: "a.yaml", text }], utc);
    expect(tasksOf(found).a?.schedule).toEqual({ cron, zone: "UTC" });
    expect(told(found, "note")).toContain(`a: ${given} means ${cron}: a step that is longer than its field`);
  });

  it("reports a Helm template as such", () => {
    const template = "{{- if .Values.on }}\nkind: CronJob\nmetadata: { name: {{ .Release.Name }} }\n{{- end }}\n";
    for (const text of [template, "kind: CronJob\nmetadata:\n  name: {{ .Release.Name }}\n"])
      expect(importKubernetes([{ path: "a.yaml", text }], utc).remarks).toMatchObject([
        {
          kind: "problem",
          message: "a.yaml is a Helm template, and no manifest yet",
          hint: expect.stringContaining("helm template"),
        },
      ]);
    const args =
      'kind: CronJob\nmetadata: { name: a }\nspec: { schedule: "@daily", note: "docker ps --format {{.ID}}" }\n';
    expect(told(importKubernetes([{ path: "a.yaml", text: args }], utc), "problem")).toEqual([]);
  });

  it("reads @every, and reports the effect of Indexed together with Forbid", () => {
    const text = `kind: CronJob\nmetadata: { name: a }\nspec: { schedule: "@every 1h30m", concurrencyPolicy: Forbid, jobTemplate: { spec: { completions: 2, completionMode: Indexed, template: { spec: { containers: [{ command: [a] }] } } } } }`;
    const every = importKubernetes([{ path: "x.yaml", text }], utc);
    expect(tasksOf(every).a).toMatchObject({ schedule: { every: "1h30m" }, overlap: "skip" });
    expect(told(every, "lost")).toContainEqual(expect.stringContaining("2 indexed completions"));
  });
});

describe("a star with a step in one day field, and a value in the other", () => {
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
  ])("%s becomes %s for Kubernetes, BullMQ and pg-boss", (theirs, ours) => {
    const manifest = `kind: CronJob\nmetadata: { name: a }\nspec: { schedule: "${theirs}", jobTemplate: {} }`;
    const found = [
      importKubernetes([{ path: "a.yaml", text: manifest }], utc),
      importBullmq([{ path: "a.json", text: JSON.stringify([{ key: "a", pattern: theirs, tz: "UTC" }]) }], utc),
      importPgBoss([{ path: "a.json", text: JSON.stringify([{ name: "a", cron: theirs }]) }], utc),
    ];
    for (const each of found) expect(tasksOf(each).a?.schedule).toEqual({ cron: ours, zone: "UTC" });
  });

  it("with a seconds field it also means odd days and Mondays", () => {
    const text = JSON.stringify([{ key: "a", pattern: "0 0 0 */2 * 1", tz: "UTC" }]);
    const written = tasksOf(importBullmq([{ path: "a.json", text }], utc)).a;
    const slots = nextSlots(readWritten("a", written).schedule, Date.UTC(2026, 5, 30), 5);
    // 6 July 2026 is a Monday.
    expect(slots.map((slot) => new Date(slot).getUTCDate())).toEqual([1, 3, 5, 6, 7]);
  });
});

describe("BullMQ", () => {
  const found = importBullmq([sample("bullmq-schedulers.json")], utc);

  it.each([
    [{ every: 5_000, endDate: 1_262_304_000_000 }, "ended at 2010-01-01T00:00:00.001Z"],
    [{ pattern: "0 4 * * *", tz: "UTC", endDate: past }, "ended at 2010-01-01T00:00:00.001Z"],
    [{ every: 5_000, limit: 3, iterationCount: 3 }, `ended at ${now}`],
  ])("an ended scheduler is imported without its schedule: %j", (row, why) => {
    const found = importBullmq([{ path: "a.json", text: JSON.stringify([{ key: "a", ...row }]) }], utc);
    expect(tasksOf(found)).toEqual({ a: {} });
    expect(told(found, "note")).toEqual([`a: ${why}, so it is imported without its schedule`]);
    expect(told(found, "lost")).toEqual([]);
  });

  it("reports a start or end date that is not a time", () => {
    const row = { key: "a", every: 5_000, startDate: "soon", endDate: null };
    const found = importBullmq([{ path: "a.json", text: JSON.stringify([row]) }], utc);
    expect(told(found, "lost")).toEqual(['a: its startDate "soon", which is no time']);
  });

  it("imports schedulers of several queues, including those of older versions", () => {
    readable(found);
    expect(tasksOf(found)).toEqual({
      "daily-digest": {
        group: "mail",
        schedule: { cron: "0 30 7 * * 1-5", zone: "America/New_York" },
        slotPayload: { audience: "all" },
        retry: { attempts: 5, delay: "3s", jitter: 0 },
      },
      "poll-inbox": {
        group: "mail",
        schedule: { every: "1m", anchor: "1970-01-01T00:00:12.345Z" },
        slotPayload: {},
        retry: { attempts: 3, backoff: "fixed", jitter: 0 },
      },
      cleanup: {
        group: "legacy",
        schedule: { cron: "0 4 * * *", zone: "Europe/Paris", until: "2030-01-01T00:00:00.000Z" },
      },
      sweep: { group: "legacy", schedule: { every: "5s" } },
    });
  });

  it("reports lost fields, and entries that cannot be imported", () => {
    expect(told(found, "problem")).toEqual(["odd: it has neither a pattern nor every"]);
    expect(told(found, "lost")).toEqual([
      "daily-digest: its option removeOnComplete: true",
      "daily-digest: its option priority: 2",
      "poll-inbox: its limit of 100 times, of which it had 40",
    ]);
    expect(told(importBullmq([{ path: "x", text: "[" }], utc), "problem")).toEqual([
      expect.stringContaining("is not JSON"),
    ]);
  });
});

describe("pg-boss", () => {
  const found = importPgBoss([sample("pg-boss-schedules.json")], utc);

  it("imports zone, data, retries, expiry and the handling of missed schedules", () => {
    readable(found);
    expect(tasksOf(found)).toEqual({
      "notification-abc": {
        schedule: { cron: "0 3 * * *", zone: "America/Chicago" },
        slotPayload: { kind: "digest" },
        timeout: "2m",
        retry: { attempts: 5, delay: "5s", maxDelay: "10m" },
        misfire: { policy: "skip", after: "1m" },
      },
      "report:us": {
        schedule: { cron: "0 6 * * *", zone: "UTC" },
        slotPayload: { region: "us" },
        timeout: "15m",
        priority: 8,
        retry: { attempts: 3, backoff: "fixed", delay: "0s", jitter: 0 },
        misfire: { policy: "fire_once", after: "1m" },
      },
      "report:eu": {
        schedule: { cron: "0 18 * * *", zone: "UTC" },
        timeout: "15m",
        misfire: { policy: "skip", after: "1m" },
      },
    });
  });

  it("reports lost fields, assumptions, and entries that cannot be imported", () => {
    expect(told(found, "problem")).toEqual(["workflow:w1: its recurrence is of the kind rrule"]);
    expect(told(found, "lost")).toEqual([
      'notification-abc: its option singletonKey: "abc"',
      'report:eu: its option deadLetter: "failed"',
    ]);
    expect(told(found, "note")).toContainEqual(expect.stringContaining("2 retries and 15 minutes are taken"));
  });

  it("replaces names that are invalid or already taken", () => {
    const rows = ["a b", "a-b", "!", ""].map((name) => ({ name, cron: "0 3 * * *" }));
    const odd = importPgBoss([{ path: "x", text: JSON.stringify(rows) }], utc);
    expect(odd.tasks.map(({ name }) => name)).toEqual(["a-b", "a-b-2", "task", "task-2"]);
    expect(told(odd, "note").filter((text) => text.includes("is called"))).toHaveLength(4);
  });
});
