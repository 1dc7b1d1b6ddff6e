import { expect, test } from "vitest";
import {
  checkRule,
  checkRuleName,
  deadlinesAround,
  isHeldBack,
  isQuiet,
  type RuleContent,
  ruleText,
} from "./stored-rules.ts";

const at = (text: string) => Date.parse(text);
const everywhere = { everywhere: true };
const deadline = { kind: "deadline", by: "06:00", zone: "Asia/Shanghai" } as const;

test.each([
  ["kind", { kind: "faild" }, /no kind "faild"; did you mean "failed"\?/],
  ["failures", { kind: "failed" }, /needs failures/],
  ["failures", { kind: "failed", failures: 0 }, /from 1 to 100/],
  ["of", { kind: "failed", failures: 3, of: 2 }, /at least 3/],
  ["by", { kind: "failed", failures: 1, by: "06:00" }, /has no "by"/],
  ["enabeld", { kind: "ended", enabeld: true }, /did you mean "enabled"\?/],
  ["by", { ...deadline, by: "24:00" }, /a time such as/],
  ["days[1]", { ...deadline, days: [0, 7] }, /from 0 to 6/],
  ["days", { ...deadline, days: [] }, /a list of 1/],
  ["times", { kind: "slow", times: 1 }, /above 1/],
  ["longer", { kind: "quick", longer: "5s" }, /has no "longer"/],
  ["more", { kind: "queue" }, /needs more or grows/],
  ["grows", { kind: "queue", more: 1, within: "5m" }, /within needs grows/],
  ["scope", { kind: "store" }, /whole cluster, so its scope must be \{ everywhere: true \}/],
  ["scope", { kind: "expiring", scope: { everywhere: true, tasks: ["a"] } }, /whole cluster/],
  ["more", { kind: "store", more: 1, scope: { everywhere: true } }, /has no "more"/],
  ["grows", { kind: "queue", grows: 0 }, /from 1 to 1000000/],
  ["scope.taks", { kind: "ended", scope: { taks: ["a"] } }, /did you mean "tasks"\?/],
  ["scope.tasks[0]", { kind: "ended", scope: { tasks: [7] } }, /a text/],
  ["scope.tasks[0]", { kind: "ended", scope: { tasks: [""] } }, /not be empty/],
  ["scope.owners[0]", { kind: "ended", scope: { owners: [""] } }, /not be empty/],
  ["scope.labels.team", { kind: "ended", scope: { labels: { team: 7 } } }, /a text/],
  ["channels", { kind: "ended", channels: "ops" }, /a list/],
  ["maintenance[0].to", { kind: "ended", maintenance: [{ from: "2026-11-30T14:00:00Z" }] }, /needs to/],
  ["maintenance[0].from", { kind: "ended", maintenance: [{ from: "2026-11-30", to: "2026-12-01" }] }, /a time such as/],
  [
    "maintenance[0].to",
    { kind: "ended", maintenance: [{ from: "2026-02-01T14:00:00Z", to: "2026-02-30T14:00:00Z" }] },
    /a time such as/,
  ],
  [
    "maintenance[0].to",
    { kind: "ended", maintenance: [{ from: "2026-12-01T00:00:00Z", to: "2026-12-01T00:00:00Z" }] },
    /end after it begins/,
  ],
  ["quiet.zone", { kind: "ended", quiet: { from: "22:00", to: "06:00" } }, /needs zone/],
  ["quiet.to", { kind: "ended", quiet: { from: "22:00", to: "22:00", zone: "UTC" } }, /another time/],
  ["escalate.channels", { kind: "ended", escalate: { after: "15m" } }, /needs channels/],
  ["", [], /an object/],
])("a wrong rule is refused with the path %s: %j", (path, given, message) => {
  expect(() => checkRule(given as unknown as RuleContent)).toThrow(
    expect.objectContaining({ code: "OPTION_INVALID", path, message: expect.stringMatching(message) }),
  );
});

test.each([
  ["DURATION_INVALID", "after", { kind: "overdue", after: "soon" }],
  ["DURATION_INVALID", "escalate.after", { kind: "ended", escalate: { after: "500ms", channels: ["a"] } }],
  ["ZONE_UNKNOWN", "zone", { ...deadline, zone: "Asia/Peking" }],
  ["ZONE_UNKNOWN", "quiet.zone", { kind: "ended", quiet: { from: "22:00", to: "06:00", zone: "Mars" } }],
])("%s names the option's path: %s", (code, path, given) => {
  expect(() => checkRule(given as unknown as RuleContent)).toThrow(expect.objectContaining({ code, path }));
});

test.each(["failed", "test", "", " a", "a".repeat(101), "a b"])("the rule name %j is refused", (name) => {
  expect(() => checkRuleName(name)).toThrow(expect.objectContaining({ code: "OPTION_INVALID", path: "name" }));
});

test.each(["billing/settled", "每日", "a.b_c-d:e@f"])("the rule name %j is accepted", (name) => {
  expect(checkRuleName(name)).toBe(name);
});

test.each<[RuleContent, string]>([
  [{ kind: "failed", failures: 1 }, "the last run failed"],
  [{ kind: "failed", failures: 3, of: 5 }, "3 of the last 5 runs failed"],
  [{ kind: "slow" }, "a run takes longer than 3 times the usual"],
  [{ kind: "slow", longer: "30m" }, "a run takes longer than 30m"],
  [
    { kind: "slow", longer: "30m", times: 2 },
    "a run takes longer than 30m, or a run takes longer than 2 times the usual",
  ],
  [deadline, "not done by 06:00 Asia/Shanghai"],
  [{ kind: "overdue", after: "5m" }, "due runs wait for a worker for 5m"],
  [{ kind: "store", scope: everywhere }, "statements of a process take longer than 1s"],
  [{ kind: "snapshot", scope: everywhere }, "a snapshot keeps dead rows for 10m"],
  [{ kind: "coordination", scope: everywhere }, "a process is without its coordination service for 1m"],
  [{ kind: "expiring", before: "30d", scope: everywhere }, "a token, a key or a certificate expires within 30d"],
  [{ kind: "quick" }, "a run takes less than the usual divided by 3"],
  [{ kind: "quick", shorter: "5s" }, "a run takes less than 5s"],
  [{ kind: "queue", more: 100 }, "more than 100 due runs of a task wait"],
  [{ kind: "queue", grows: 100 }, "within 10m, more than 100 due runs of a task have come to wait"],
  [
    { kind: "queue", more: 9, grows: 7, within: "5m" },
    "more than 9 due runs of a task wait, or within 5m, more than 7 due runs of a task have come to wait",
  ],
  [{ kind: "changed" }, "its definition was changed"],
])("%j in words: %s", (content, text) => {
  expect(checkRule(content)).toBe(content);
  expect(ruleText(content)).toBe(text);
});

test.each([
  // 2026-11-30 is a Monday.
  ["just before it", "2026-11-30T05:59:59+08:00", undefined, "2026-11-29T06:00+08:00", "2026-11-30T06:00+08:00"],
  ["at it", "2026-11-30T06:00+08:00", undefined, "2026-11-30T06:00+08:00", "2026-12-01T06:00+08:00"],
  ["on working days", "2026-11-29T12:00+08:00", [1, 2, 3, 4, 5], "2026-11-27T06:00+08:00", "2026-11-30T06:00+08:00"],
  ["once a week", "2026-11-30T06:00+08:00", [0], "2026-11-29T06:00+08:00", "2026-12-06T06:00+08:00"],
])("the deadlines before and after a time: %s", (_, now, days, last, next) => {
  const found = deadlinesAround({ ...deadline, ...(days && { days }) }, at(now));
  expect([found.last.byMs, found.next.byMs]).toEqual([at(last), at(next)]);
  expect(found.last.byMs - found.last.fromMs).toBe(86_400_000);
});

test("a deadline keeps its local time across a change of clocks", () => {
  const berlin = { by: "06:00", zone: "Europe/Berlin" };
  const { last, next } = deadlinesAround(berlin, at("2026-03-29T01:30:00Z"));
  expect([last.byMs, next.byMs]).toEqual([at("2026-03-28T05:00:00Z"), at("2026-03-29T04:00:00Z")]);
  // 02:30 does not exist on 2026-03-29, because the clocks go forward; the deadline is an hour later.
  const skipped = deadlinesAround({ by: "02:30", zone: "Europe/Berlin" }, at("2026-03-29T00:00:00Z"));
  expect(skipped.next.byMs).toBe(at("2026-03-29T01:30:00Z"));
});

test.each([
  ["22:00", "07:00", "21:59", false],
  ["22:00", "07:00", "22:00", true],
  ["22:00", "07:00", "06:59", true],
  ["22:00", "07:00", "07:00", false],
  ["12:00", "13:00", "12:30", true],
  ["12:00", "13:00", "13:00", false],
])("with quiet hours from %s to %s, %s is quiet: %s", (from, to, time, quiet) => {
  expect(isQuiet({ from, to, zone: "Asia/Shanghai" }, at(`2026-11-30T${time}:00+08:00`))).toBe(quiet);
});

test("a rule is held back in its quiet hours, and in each maintenance window from its beginning to before its end", () => {
  const maintenance = [
    { from: "2026-11-30T22:00:00+08:00", to: "2026-12-01T02:00:00+08:00", description: "new disks" },
    { from: "2026-12-05T00:00:00Z", to: "2026-12-05T01:00:00Z" },
  ];
  expect(checkRule({ kind: "ended", maintenance })).toEqual({ kind: "ended", maintenance });
  const quiet = { from: "12:00", to: "13:00", zone: "UTC" };
  for (const [time, held] of [
    ["2026-11-30T13:59:59Z", false],
    ["2026-11-30T14:00:00Z", true],
    ["2026-11-30T18:00:00Z", false],
    ["2026-12-05T00:59:59Z", true],
    ["2026-12-05T12:30:00Z", true],
  ] as const)
    expect(isHeldBack({ maintenance, quiet }, at(time)), time).toBe(held);
  expect(isHeldBack({}, at("2026-11-30T14:00:00Z"))).toBe(false);
});
