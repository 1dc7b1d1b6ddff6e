import { describe, expect, it } from "vitest";
import { readable, tasksOf, told, utc } from "../../../test/support/imports.ts";
import { compareTask } from "../compare/compare.ts";
import { fugitSchedule } from "./fugit.ts";
import { importSidekiqCron } from "./sidekiq-cron.ts";
import { importSolidQueue } from "./solid-queue.ts";

const solid = (text: string) => importSolidQueue([{ path: "recurring.yml", text }], utc);
const sidekiq = (text: string) => importSidekiqCron([{ path: "schedule.yml", text }], utc);

const phrases: [string, string, string | null][] = [
  ["every hour", "0 * * * *", null],
  ["every hour at minute 12", "12 * * * *", null],
  ["every 5 minutes", "*/5 * * * *", null],
  ["every 5m", "*/5 * * * *", null],
  ["every 15s", "*/15 * * * * *", null],
  ["every 3h", "0 */3 * * *", null],
  ["every 4M", "0 0 1 */4 *", null],
  ["every 1 h", "0 * * * *", null],
  ["every second", "* * * * * *", null],
  ["every day", "0 0 * * *", null],
  ["every 2 days", "0 0 */2 * *", null],
  ["every week", "0 0 * * 0", null],
  ["every month", "0 0 1 * *", null],
  ["every year", "0 0 1 1 *", null],
  ["every monday", "0 0 * * MON", null],
  ["at 5am every day", "0 5 * * *", null],
  ["every day at five", "0 5 * * *", null],
  ["every day at 5 and 17", "0 5,17 * * *", null],
  ["every day at 16:00 and 18:00", "0 16,18 * * *", null],
  ["every weekday at 5pm", "0 17 * * MON-FRI", null],
  ["every tuesday and monday at 5pm", "0 17 * * MON,TUE", null],
  ["every day at 12:15 am", "15 0 * * *", null],
  ["every day at 5 pm on America/Los_Angeles", "0 17 * * *", "America/Los_Angeles"],
  ["every day at 6 pm in Asia/Tokyo", "0 18 * * *", "Asia/Tokyo"],
  ["30 22 * * * Europe/Paris", "30 22 * * *", "Europe/Paris"],
  ["0 0 */2 * 1-5", "0 0 1-31/2 * 1-5", null],
  ["0 0 1-7& * mon", "0 0 * * mon#1", null],
  ["0 7 * * fri#-1", "0 7 * * friL", null],
  ["0 0 last * *", "0 0 L * *", null],
  ["@daily", "@daily", null],
];

describe("Fugit's schedule texts", () => {
  it.each(phrases)("%s", (text, cron, zone) => expect(fugitSchedule(text)).toEqual({ cron, zone }));

  it("fire at the times of a second reading that shares no code with the importer", () => {
    const text = phrases.map(([phrase], at) => `t${at}: { class: A, schedule: ${JSON.stringify(phrase)} }`).join("\n");
    const { tasks } = solid(text);
    expect(tasks).toHaveLength(phrases.length);
    const outcomes = tasks.map((task) => compareTask(task, utc.nowMs, 20));
    // The comparison's reader of Fugit expressions does not support the sign &, so this expression is not compared.
    expect(outcomes.filter(({ outcome }) => outcome !== "same").map(({ said }) => said)).toEqual(["0 0 1-7& * mon"]);
  });

  it.each([
    "every other day",
    "every 90 minutes",
    "every day at 16:15 and 18:30",
    "nada",
    "0 0 13& * fri",
    "9 0 * * sun%2",
  ])("%s is a problem with its line, not a guess", (schedule) => {
    const found = solid(`# recurring\nproduction:\n  odd:\n    class: A\n    schedule: ${schedule}\n`);
    expect(found.tasks).toEqual([]);
    expect(told(found, "problem")).toEqual([expect.stringMatching(/^odd: /)]);
    if (/^(?:every|nada)/.test(schedule))
      expect(told(found, "problem")).toEqual([expect.stringMatching(/^odd: recurring\.yml:5: its schedule "/)]);
  });
});

describe("Solid Queue", () => {
  const rails = `
common: &common
  trim: { class: SolidCable::TrimJob, schedule: every hour }
development:
  <<: *common
  seed: { class: Seed, schedule: every minute }
production:
  <<: [*common]
  trim: { class: Trim, schedule: every 2 hours, queue: low, args: [1, { keep: true }], description: d }
  clear: { command: "Done.clear", schedule: "at 5am every day", priority: 3 }
`;
  it("imports the production section with merge keys, and reports what it ignores", () => {
    const found = solid(rails);
    readable(found);
    expect(tasksOf(found)).toEqual({
      trim: {
        description: "d",
        group: "low",
        schedule: { cron: "0 */2 * * *", zone: "UTC" },
        slotPayload: [1, { keep: true }],
        misfire: "skip",
      },
      clear: { schedule: { cron: "0 5 * * *", zone: "UTC" }, misfire: "skip" },
    });
    expect(found.tasks.map(({ comment }) => comment)).toEqual([
      "ran the Ruby class Trim",
      "ran the Ruby code Done.clear",
    ]);
    expect(told(found, "note")).toEqual([
      ": recurring.yml: the section production is imported; passed over: common, development",
      ": 1 task ran Ruby classes, named in the remark above each",
      ": 2 without a zone are taken to mean UTC",
    ]);
    expect(told(found, "lost")).toEqual([
      'clear: its command "Done.clear": it is Ruby code',
      "clear: its priority 3: the smallest is the first there, 9 is here",
    ]);
  });

  it("imports a file without sections, or with a single one, and reports a file without tasks", () => {
    expect(Object.keys(tasksOf(solid("a: { class: A, schedule: every hour }")))).toEqual(["a"]);
    expect(Object.keys(tasksOf(solid("test:\n  a: { class: A, schedule: every hour }")))).toEqual(["a"]);
    expect(told(solid("{}"), "note")).toEqual([": recurring.yml has no recurring tasks"]);
    expect(solid("a: b: c").remarks).toMatchObject([{ kind: "problem", hint: "Give the file as Rails reads it." }]);
    expect(solid("- <%= a %>").remarks).toMatchObject([{ kind: "problem", hint: /ERB/ }]);
  });
});

describe("Sidekiq-cron", () => {
  it("imports a map and a list, and disabled entries without their schedule", () => {
    const map = sidekiq(
      "digest:\n  cron: '0 22 * * 1-5 Europe/Paris'\n  class: Digest\n  queue: scheduled\n  args: { mode: full }\n",
    );
    readable(map);
    expect(tasksOf(map)).toEqual({
      digest: {
        group: "scheduled",
        schedule: { cron: "0 22 * * 1-5", zone: "Europe/Paris" },
        slotPayload: { mode: "full" },
        misfire: { policy: "skip", after: "1m" },
      },
    });
    const list = sidekiq(
      "- { name: a, cron: '*/5 * * * *', class: A, status: disabled }\n- { name: b, cron: every 5 minutes, class: B }",
    );
    expect(tasksOf(list).a).not.toHaveProperty("schedule");
    expect(tasksOf(list).b).toHaveProperty("schedule");
    expect(list.tasks.map((task) => compareTask(task, utc.nowMs, 20).outcome)).toEqual(["same", "same"]);
  });
});
