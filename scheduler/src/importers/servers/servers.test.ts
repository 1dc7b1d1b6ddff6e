import { describe, expect, it } from "vitest";
import { readable, tasksOf, told, utc } from "../../../test/support/imports.ts";
import { compareTask } from "../compare/compare.ts";
import { importDkron } from "./dkron.ts";
import { importJenkins } from "./jenkins.ts";
import { jenkinsHash, spreadCron } from "./jenkins-hash.ts";
import { importPowerjob } from "./powerjob.ts";
import { importRundeck } from "./rundeck.ts";

describe("Jenkins", () => {
  // The expected numbers come from Jenkins' own tests for the same project names.
  it.each([
    ["stuff", "H * * * *", "56 * * * *"],
    ["stuff", "@hourly", "56 * * * *"],
    ["junk", "@hourly", "20 * * * *"],
    ["stuff", "H H(12-13) * * *", "56 13 * * *"],
    ["stuff", "H/15 * * * *", "11,26,41,56 * * * *"],
    ["junk", "H(0-15)/3 * * * *", "2,5,8,11,14 * * * *"],
    ["junk", "H(0-3)/4 * * * *", "2 * * * *"],
    ["junk", "H(0-3)/15 * * * *", undefined],
    ["junk", "H * * *", undefined],
  ])("the project %s hashes to: %s", (name, line, cron) => expect(spreadCron(line, jenkinsHash(name))).toBe(cron));

  it("draws every field within its bounds, up to the last value of each", () => {
    const line = "H H(5-8) H/3 H(1-10)/4 *";
    expect(spreadCron(line, (bound) => bound - 1)).toBe("59 8 3,6,9,12,15,18,21,24,27 4,8 *");
    expect(spreadCron(line, () => 1)).toBe("1 6 2,5,8,11,14,17,20,23,26 2,6,10 *");
  });

  const project = (spec: string, rest = "", path = "jobs/team/jobs/stuff/config.xml") =>
    importJenkins(
      [
        {
          path,
          text: `<project><triggers><hudson.triggers.TimerTrigger><spec>${spec}</spec></hudson.triggers.TimerTrigger></triggers>${rest}</project>`,
        },
      ],
      utc,
    );

  it("includes the folder in the name, applies TZ to all lines, and drops the schedule of a disabled project", () => {
    const found = project("# a\nTZ=Europe/London\n0 6 * * 1-5\n0 0 1-7 * 0", "<disabled>true</disabled>");
    expect(
      found.tasks.map(({ name, written, comment }) => [name, "schedule" in written, comment.split("\n")[1]]),
    ).toEqual([
      ["team/stuff-1", false, 'stood still; its schedule: {"cron":"0 6 * * 1-5","zone":"Europe/London"}'],
      ["team/stuff-2", false, 'stood still; its schedule: {"cron":"0 0 * * 0#1","zone":"Europe/London"}'],
    ]);
  });

  it("reads a plain schedule, and reports unsupported ones", () => {
    expect(tasksOf(importJenkins([{ path: "nightly.txt", text: "30 2 * * *\n" }], utc))).toEqual({
      nightly: { schedule: { cron: "30 2 * * *", zone: "UTC" }, misfire: "skip" },
    });
    expect(told(project("0 0 13 * 5"), "problem")).toEqual([expect.stringMatching(/no cron has its days/)]);
    expect(told(project(""), "problem")).toEqual(["team/stuff: its schedule is empty"]);
    for (const spec of ["TZ=Asia/Tokyo\nTZ=Europe/London\n0 6 * * *", "TZ=Asia/Tokyo\n0 6 * * *\nTZ=Europe/London"]) {
      const found = project(spec);
      expect(told(found, "problem")).toEqual(["team/stuff: its schedule has TZ=Europe/London after other lines"]);
      expect(found.tasks).toEqual([]);
    }
    expect(told(importJenkins([{ path: "a.xml", text: "<project/>" }], utc), "note")).toEqual([
      "a: has no TimerTrigger, and was passed over",
    ]);
    expect(told(importJenkins([{ path: "a.xml", text: "<project>" }], utc), "problem")).toEqual([
      expect.stringMatching(/^: a.xml is not XML/),
    ]);
  });
});

describe("Dkron", () => {
  const entry = (row: object) => importDkron([{ path: "x.json", text: JSON.stringify({ name: "a", ...row }) }], utc);
  it.each<[string, unknown]>([
    ["@every 1h30m", { every: "1h30m" }],
    ["@at 2031-01-01T00:00:00Z", { at: "2031-01-01T00:00:00.000Z" }],
    ["@daily", { cron: "@daily", zone: "UTC" }],
    ["0 30 */2 1-31/2 * 1", { cron: "0 30 */2 1-31/2 * 1", zone: "UTC" }],
    ["0 0 0 */2 * 1", { cron: "0 0 0 1-31/2 * 1", zone: "UTC" }],
  ])("%s", (schedule, expected) => {
    const found = entry({ schedule, executor: "x" });
    readable(found);
    expect(tasksOf(found).a).toMatchObject({ schedule: expected });
    expect(found.tasks.map((task) => compareTask(task, utc.nowMs, 20).outcome)).toEqual(["same"]);
  });

  it("ignores the bounds of a single time, and reports unreadable headers", () => {
    const bounds = { starts_at: "2030-01-01T00:00:00Z", expires_at: "2032-01-01T00:00:00Z" };
    expect(tasksOf(entry({ schedule: "@at 2031-01-01T00:00:00Z", executor: "x", ...bounds })).a).toEqual({
      schedule: { at: "2031-01-01T00:00:00.000Z" },
      misfire: "skip",
    });
    const http = { url: "https://example.com", headers: '["\\x"' };
    expect(told(entry({ schedule: "@daily", executor: "http", executor_config: http }), "lost")).toEqual([
      'a: its headers ["\\x", which are no list in JSON',
    ]);
  });

  it("runs a command in a shell if needed, and reports other executors", () => {
    const shell = (command: string, more = {}) =>
      entry({ schedule: "@daily", executor: "shell", executor_config: { command, ...more } });
    expect(tasksOf(shell("a | b")).a).toMatchObject({ command: { argv: ["/bin/sh", "-c", "a | b"] } });
    expect(tasksOf(shell("/bin/a 'b c'", { timeout: "10s" })).a).toMatchObject({
      command: { argv: ["/bin/a", "b c"] },
      timeout: "10s",
    });
    expect(told(entry({ schedule: "@daily", executor: "kafka", executor_config: { topic: "t" } }), "lost")).toEqual([
      "a: what its executor kafka runs",
    ]);
  });
});

describe("PowerJob", () => {
  it("reads a PostgreSQL dump", () => {
    const columns = "id, job_name, time_expression_type, time_expression, status, lifecycle, processor_info";
    const line = ["4", "line\\nbreak", "2", "0 0 2 * * ?", "1", '{"end":1500000000000}', "P"].join("\t");
    const text = `--\n-- PostgreSQL database dump\n--\nCOPY public.job_info (${columns}) FROM stdin;\n${line}\n\\.\n`;
    const found = importPowerjob([{ path: "x.sql", text }], utc);
    expect(found.tasks.map(({ written }) => "schedule" in written)).toEqual([false]);
    expect(told(found, "note")).toContain(
      "line\nbreak: ended at 2017-07-14T02:40:00.000Z, so it is imported without its schedule",
    );
  });

  it("imports a fixed delay without its schedule if its lifecycle has ended, and reports a future lifecycle", () => {
    const entry = (lifecycle: string) =>
      importPowerjob(
        [
          {
            path: "x.json",
            text: JSON.stringify([{ name: "a", timeExpressionType: 4, timeExpression: "1000", status: 1, lifecycle }]),
          },
        ],
        utc,
      );
    expect(entry('{"end":1500000000000}').tasks[0]?.written).not.toHaveProperty("schedule");
    const coming = entry('{"end":1950000000000}');
    expect(coming.tasks[0]?.written).toMatchObject({ schedule: { every: "1s", mode: "delay" } });
    expect(told(coming, "lost")).toContain("powerjob-: its life cycle: it begins at once, and does not end");
  });

  it("reports an unknown kind of schedule, and a file without rows", () => {
    const rows = (text: string) => importPowerjob([{ path: "x.json", text }], utc);
    expect(told(rows('[{"jobName":"a","timeExpressionType":11,"timeExpression":"{}"}]'), "problem")).toEqual([
      "a: its schedule 11 {} cannot be carried over",
    ]);
    expect(told(rows("[]"), "problem")).toEqual([": x.json has no rows of job_info"]);
  });
});

describe("Rundeck", () => {
  it("reads XML in the same way as YAML", () => {
    const xml = `<joblist><job><name>nightly</name><group>ops</group><timeZone>Europe/Berlin</timeZone><scheduleEnabled>false</scheduleEnabled>
      <schedule><time hour="2" minute="30" seconds="0"/><weekday day="MON-FRI"/><month month="*"/><year year="*"/></schedule>
      <sequence keepgoing="false"><command><exec>a</exec></command></sequence></job></joblist>`;
    const yaml = `- name: nightly\n  group: ops\n  timeZone: Europe/Berlin\n  scheduleEnabled: false\n  schedule: { time: { hour: "2", minute: "30", seconds: "0" }, weekday: { day: MON-FRI }, month: "*", year: "*" }\n  sequence: { commands: [{ exec: a }] }\n`;
    const [fromXml, fromYaml] = [xml, yaml].map((text) => importRundeck([{ path: "x", text }], utc));
    expect(fromXml?.tasks).toEqual(fromYaml?.tasks);
    expect(fromYaml?.tasks[0]?.comment).toBe(
      'stood still; its schedule: {"cron":"0 30 2 ? * MON-FRI *","zone":"Europe/Berlin"}',
    );
  });
});
