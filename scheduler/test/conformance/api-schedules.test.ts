/** Tests schedules in requests, both in the form that responses have and in the short form of task files. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { WordedSchedule } from "../../src/api/contract/task-options.ts";
import { at, cron, every, manual, rrule, type ScheduleSpec } from "../../src/schedule/schedule.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
beforeAll(async () => {
  await stage.open();
});
afterAll(() => stage.close());

const stored = async (task: string) => (await stage.store.tasks.byName(task)).definition.schedule;

it.each<[WordedSchedule | ScheduleSpec, ScheduleSpec]>([
  ["0 2 * * *", cron("0 2 * * *")],
  ["every Monday at 09:00", cron("0 9 * * MON")],
  ["manual", manual],
  [
    { cron: "0 2 * * *", zone: "Europe/Berlin", jitter: "5m" },
    cron("0 2 * * *", { zone: "Europe/Berlin", jitter: "5m" }),
  ],
  [{ every: "5m", until: "2030-01-01T00:00:00Z" }, every("5m", { until: "2030-01-01T00:00:00Z" })],
  [
    { every: "2 weeks", on: "MON", at: "09:00", anchor: "2027-03-01" },
    every("2 weeks", { on: "MON", at: "09:00", anchor: "2027-03-01" }),
  ],
  [{ rrule: "FREQ=DAILY", start: "2027-01-01T09:00" }, rrule("FREQ=DAILY", { start: "2027-01-01T09:00" })],
  [{ at: "2030-01-01T00:00:00Z" }, at("2030-01-01T00:00:00Z")],
  [cron("0 3 * * *", { zone: "Asia/Shanghai" }), cron("0 3 * * *", { zone: "Asia/Shanghai" })],
])("%j is accepted by each route that changes a task", async (schedule, spec) => {
  const api = stage.client();
  const [task, other] = [1, 2].map((n) => `t${n}-${Math.random().toString(36).slice(2)}`) as [string, string];
  await api.createTask({ task, options: { schedule } });
  expect(await stored(task)).toEqual(spec);
  await api.editTask({ task, options: { schedule: "59 23 31 12 *" } });
  await api.editTask({ task, options: { schedule } });
  expect(await stored(task)).toEqual(spec);
  await api.defineTask({ task: other, options: { schedule } });
  expect(await stored(other)).toEqual(spec);
  const { plan } = await api.planBundle({ bundle: other, tasks: [{ task: `${other}-b`, options: { schedule } }] });
  await api.applyBundle({ bundle: other, tasks: [{ task: `${other}-b`, options: { schedule } }], plan });
  expect(await stored(`${other}-b`)).toEqual(spec);
});

it.each<[unknown, string, string]>([
  [{ cron: "61 * * * *" }, "CRON_INVALID", "schedule"],
  [{ every: "soon" }, "DURATION_INVALID", "schedule"],
  [{ cron: "0 2 * * *", every: "5m" }, "TASK_INVALID", "schedule"],
  [{ crom: "0 2 * * *" }, "TASK_INVALID", "schedule"],
  [{ at: "2030-01-01T00:00:00Z", zone: "UTC" }, "TASK_INVALID", "schedule.zone"],
  [{ type: "cron", expression: "0 2 * * *", zoen: "UTC" }, "SCHEDULE_INVALID", "schedule"],
  [{ type: "crons" }, "SCHEDULE_INVALID", "schedule"],
  ["now and then", "CRON_INVALID", "schedule"],
  [7, "REQUEST_INVALID", "schedule"],
])("%j is refused: %s at %s", async (schedule, code, path) => {
  const { status, body } = await stage.ask("PUT", "/v1/tasks/refused", {
    token: stage.tokens.admin,
    headers: { "if-match": "*" },
    body: { options: { schedule } },
  });
  expect([status, body.code, body.path]).toEqual([400, code, path]);
  expect(body.hint).toMatch(/\S/);
});
