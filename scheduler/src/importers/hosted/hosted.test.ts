import { describe, expect, it } from "vitest";
import { coming, past, readable, sample, tasksOf, told, utc } from "../../../test/support/imports.ts";
import { compareTask } from "../compare/compare.ts";
import { importGraphile } from "../graphile.ts";
import { importEventbridge } from "./eventbridge.ts";
import { importGithubActions } from "./github-actions.ts";
import { importVercel } from "./vercel.ts";

describe("EventBridge Scheduler", () => {
  const schedule = (row: object) =>
    importEventbridge([{ path: "x.json", text: JSON.stringify({ Name: "a", ...row }) }], utc);

  it("imports input, retries, start date and flexible time window", () => {
    const found = importEventbridge([sample("eventbridge.json")], utc);
    expect(tasksOf(found)["billing/settle"]).toEqual({
      schedule: {
        cron: "0 15 10 ? * MON-FRI *",
        zone: "Europe/London",
        jitter: "10m",
        from: "2030-01-01T00:00:00.000Z",
      },
      slotPayload: { full: true },
      retry: 4,
    });
  });

  it.each([
    ["rate(1 minute)", { every: "1m" }],
    ["rate(12 hours)", { every: "12h" }],
    ["rate(7 days)", { every: "7d" }],
    ["cron(0 12 L * ? *)", { cron: "0 0 12 L * ? *", zone: "UTC" }],
    ["cron(0 12 ? * 6L 2027-2030)", { cron: "0 0 12 ? * FRIL 2027-2030", zone: "UTC" }],
    ["cron(0/15 8-17 ? * MON-FRI *)", { cron: "0 0/15 8-17 ? * MON-FRI *", zone: "UTC" }],
  ])("%s", (text, expected) => {
    const found = schedule({ ScheduleExpression: text });
    readable(found);
    expect(tasksOf(found)).toEqual({ a: { schedule: expected } });
    expect(found.tasks.map((task) => compareTask(task, utc.nowMs, 20).outcome)).toEqual(["same"]);
  });

  it("imports ended or disabled schedules without their times, and reports entries without a schedule", () => {
    const ended = schedule({ ScheduleExpression: "rate(1 hour)", EndDate: past });
    const later = schedule({ ScheduleExpression: "rate(1 hour)", StartDate: coming, EndDate: 1_956_528_000 });
    const once = schedule({ ScheduleExpression: "at(2020-01-01T00:00:00)" });
    expect([tasksOf(ended), tasksOf(once)]).toEqual([{ a: {} }, { a: {} }]);
    expect(tasksOf(later)).toEqual({
      a: {
        schedule: {
          every: "1h",
          anchor: "2031-01-01T00:00:00.000Z",
          from: "2031-01-01T00:00:00.000Z",
          until: "2032-01-01T00:00:00.000Z",
        },
      },
    });
    for (const { tasks } of [ended, later, once])
      expect(tasks.map((task) => compareTask(task, utc.nowMs, 20).outcome)).toEqual(["same"]);
    expect(told(schedule({}), "problem")).toEqual(["a: it has no ScheduleExpression"]);
    expect(told(schedule({ ScheduleExpression: "every(1 day)" }), "problem")).toHaveLength(1);
    expect(told(schedule({ ScheduleExpression: "rate(1 day)", EndDate: "soon" }), "problem")).toHaveLength(1);
    expect(told(importEventbridge([{ path: "x.json", text: "{}" }], utc), "problem")).toEqual([
      ": x.json has no schedules",
    ]);
  });

  it("finds the schedules of a CloudFormation template", () => {
    const template = {
      Resources: {
        Night: { Type: "AWS::Scheduler::Schedule", Properties: { ScheduleExpression: "cron(0 2 * * ? *)" } },
        Other: { Type: "AWS::SQS::Queue", Properties: {} },
      },
    };
    const found = importEventbridge([{ path: "x.json", text: JSON.stringify(template) }], utc);
    expect(tasksOf(found)).toEqual({ Night: { schedule: { cron: "0 0 2 * * ? *", zone: "UTC" } } });
  });
});

describe("vercel.json and workflows", () => {
  it("reports a file without crons, and ignores workflows that only other events start", () => {
    expect(told(importVercel([{ path: "vercel.json", text: "{}" }], utc), "note")).toEqual([
      ": vercel.json has no crons",
    ]);
    const found = importGithubActions([{ path: ".github/workflows/a.yml", text: "on: [push]\njobs: {}\n" }], utc);
    expect([found.tasks, told(found, "note")]).toEqual([
      [],
      [".github/workflows/a.yml: has no on.schedule, and was passed over"],
    ]);
  });

  it("reports other triggers of a workflow, and names an unnamed workflow after its file", () => {
    const text = "on:\n  push:\n  schedule: [{ cron: '0 4 * * *' }]\n";
    const found = importGithubActions([{ path: ".github/workflows/nightly.yaml", text }], utc);
    expect(Object.keys(tasksOf(found))).toEqual(["nightly"]);
    expect(told(found, "lost")).toEqual(["nightly: it also runs on push"]);
  });

  it("leaves out an unreadable cron, and imports the others", () => {
    const text = JSON.stringify({
      crons: [
        { path: "/a", schedule: "0 25 * * *" },
        { path: "/b?x=1", schedule: "0 2 * * *" },
      ],
    });
    const found = importVercel([{ path: "vercel.json", text }], utc);
    expect(Object.keys(tasksOf(found))).toEqual(["b-x-1"]);
    expect(told(found, "problem")).toEqual([expect.stringMatching(/^\/a: .*hour: "25" is out of range/)]);
  });
});

describe("graphile-worker's crontab", () => {
  it("reads options and payloads, and reports invalid lines", () => {
    const text = "# a\n\n0 4 * * 1 send ?id=weekly&max=3 {to: 'all', n: [1]}\n0 4 * * send\n0 4 * * 1 bad {a:\n";
    const found = importGraphile([{ path: "crontab", text }], utc);
    readable(found);
    expect(tasksOf(found)).toMatchObject({ weekly: { slotPayload: { to: "all", n: [1] }, retry: { attempts: 3 } } });
    expect(told(found, "problem")).toEqual([
      "crontab:4: is no line of graphile-worker's crontab",
      "crontab:5: is no line of graphile-worker's crontab",
    ]);
    expect(told(found, "note")).toContain(": 1 task ran tasks of another name, named in the remark above each");
  });
});
