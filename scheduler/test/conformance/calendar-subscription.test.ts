import ICAL from "ical.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cron, every } from "../../src/schedule/schedule.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
beforeAll(async () => {
  await stage.open();
  const daily = cron("0 3 * * *");
  await stage.task("backup", { schedule: daily, group: "night" });
  await stage.task("team/settle", { schedule: daily, runLabels: { tier: "gold", area: "money" } });
  await stage.task("team/report", { schedule: daily, runLabels: { tier: "gold" } });
  await stage.task("often", { schedule: every("1m") });
  await stage.task("by-hand");
});
afterAll(() => stage.close());

const path = "/v1/timeline/calendar.ics";
const eventsOf = (text: string) => new ICAL.Component(ICAL.parse(text)).getAllSubcomponents("vevent");
const tasksOf = (text: string) =>
  [...new Set(eventsOf(text).map((event) => String(event.getFirstPropertyValue("summary")).replace(/ .*/, "")))].sort();

test("a calendar has what fires, by namespace, group, label and name", async () => {
  const api = stage.client("viewer");
  const all = await api.getCalendarFeed({ days: 3 });
  expect(tasksOf(all)).toEqual(["Often:", "backup", "team/report", "team/settle"]);
  expect(eventsOf(all).filter((event) => event.getFirstPropertyValue("summary") === "backup")).toHaveLength(3);
  expect(all).toContain("X-CARILLON-UNFORESEEN:1\r\n");
  for (const [filter, tasks] of [
    [{ namespace: "team" }, ["team/report", "team/settle"]],
    [{ group: "night" }, ["backup"]],
    [{ matching: "*/re*" }, ["team/report"]],
    [{ label: ["tier:gold"] }, ["team/report", "team/settle"]],
    [{ label: ["tier:gold", "area:money"] }, ["team/settle"]],
    [{ label: ["tier:tin"] }, ["No"]],
  ] as const)
    expect([
      filter,
      tasksOf(await api.getCalendarFeed({ ...filter, label: [...("label" in filter ? filter.label : [])] })),
    ]).toEqual([filter, tasks]);
  await expect(api.getCalendarFeed({ label: ["tier:gold", "tier:tin"] })).rejects.toMatchObject({
    code: "OPTION_INVALID",
    path: "label",
  });
  await expect(api.getCalendarFeed({ days: 91 })).rejects.toMatchObject({ code: "REQUEST_INVALID", path: "days" });
});

test("a token in the URL reads the calendar of its namespaces and nothing else, until it is revoked", async () => {
  const api = stage.client();
  await api.createUser({ name: "ann", password: "twelve bells at noon", role: "viewer" });
  const { secret } = await api.createToken({ name: "phone", user: "ann", scopes: ["feed:read"], namespaces: ["team"] });
  const url = `${path}?token=${secret}`;
  const { status, headers, body } = await stage.ask("GET", url);
  expect([status, headers.get("content-type")]).toEqual([200, "text/calendar; charset=utf-8"]);
  expect(tasksOf(body)).toEqual(["team/report", "team/settle"]);
  expect((await stage.ask("GET", `${url}&namespace=default`)).body).toMatchObject({ code: "ACCESS_DENIED" });
  for (const other of ["/v1/tasks", "/v1/timeline", "/v1/me"]) {
    expect((await stage.ask("GET", `${other}?token=${secret}`)).status, `${other}, in its URL`).toBe(401);
    expect((await stage.ask("GET", other, { token: secret })).status, `${other}, in a header`).toBe(403);
  }
  await api.revokeToken({ token: "phone", user: "ann" });
  await expect.poll(async () => (await stage.ask("GET", url)).status, { timeout: 60_000 }).toBe(401);
});

test("a token that may do more is refused in a URL, and a wrong one is in the security log", async () => {
  const more = await stage.token("viewer", { scopes: ["feed:read", "tasks:read"] });
  for (const token of [stage.tokens.viewer, more])
    expect((await stage.ask("GET", `${path}?token=${token}`)).body).toMatchObject({
      code: "ACCESS_DENIED",
      hint: expect.stringContaining("--scope feed:read"),
    });
  expect((await stage.ask("GET", path, { token: more })).status, "by a header it may").toBe(200);
  expect(
    (await stage.ask("GET", path, { token: await stage.token("viewer", { scopes: ["tasks:read"] }) })).status,
  ).toBe(403);
  const before = stage.lines.length;
  const wrong = `ct_1_${"x".repeat(43)}`;
  const { body, status } = await stage.ask("GET", `${path}?token=${wrong}`);
  expect([status, body.code]).toEqual([401, "SIGN_IN_NEEDED"]);
  expect(stage.lines.slice(before)).toContainEqual(
    expect.objectContaining({
      level: "warn",
      message: expect.stringMatching(/^refused: /),
      fields: expect.objectContaining({ code: "SIGN_IN_NEEDED", route: `GET ${path}` }),
    }),
  );
  expect((await stage.ask("GET", `${path}?token=a&token=b`)).status).toBe(401);
  const logged = JSON.stringify(stage.lines);
  for (const token of [wrong, more, stage.tokens.viewer]) expect(logged).not.toContain(token);
});
