import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { taskOptions } from "../../src/api/contract/task-options.ts";
import { readYaml } from "../../src/apply/read.ts";
import { writeYaml } from "../../src/apply/write.ts";
import { every, rrule, validateSchedule } from "../../src/schedule/schedule.ts";
import { writtenTask } from "../../src/task/written.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage } from "../support/store-stage.ts";

const zone = "Europe/Berlin";
const from = "2030-03-25T08:00:00Z";
/** 09:00 in Berlin on every second Monday; daylight saving time begins on 31 March 2030, between the first and the second. */
const slots = ["2030-03-25T08:00:00Z", "2030-04-08T07:00:00Z", "2030-04-22T07:00:00Z"].map(Date.parse);
const specs = {
  interval: every("2 weeks", { on: "MON", at: "09:00", zone, from, times: 3 }),
  rrule: rrule("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;COUNT=4", { start: "2030-03-25T09:00", zone, exdate: ["2030-05-06"] }),
};

it("calendar periods and recurrence rules round-trip through the API's contract and a file", () => {
  for (const schedule of Object.values(specs)) {
    const given = taskOptions.parse(JSON.parse(JSON.stringify({ schedule })));
    expect(validateSchedule(given.schedule)).toEqual(schedule);
  }
  const text = `tasks:
  interval:
    schedule: { every: 2 weeks, on: MON, at: 09:00, zone: Europe/Berlin, anchor: 2026-03-16 }
  rrule:
    schedule: { rrule: FREQ=DAILY, start: 2026-03-16T09:00, exdate: [2026-12-25] }
  lines:
    schedule: |
      DTSTART;TZID=Europe/Berlin:20260106T090000
      RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU
`;
  const { tasks, problems } = readYaml("tasks.yaml", text);
  expect(problems).toEqual([]);
  expect(tasks.map(({ definition }) => definition.schedule)).toEqual([
    every("2 weeks", { on: "MON", at: "09:00", zone, anchor: "2026-03-16" }),
    rrule("FREQ=DAILY", { start: "2026-03-16T09:00", exdate: ["2026-12-25"] }),
    rrule("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", { start: "2026-01-06T09:00", zone }),
  ]);
  const toWrite = tasks.map(({ definition }) => ({ name: definition.name, written: writtenTask(definition) }));
  const written = writeYaml(toWrite, null);
  expect(readYaml("again.yaml", written).tasks.map(({ definition }) => definition.schedule)).toEqual(
    tasks.map(({ definition }) => definition.schedule),
  );
  const wrong =
    "tasks:\n  a:\n    schedule: { every: 2 weeks, on: someday }\n  b:\n    schedule: { rrule: FREQ=DAILY, start: soon }\n";
  expect(readYaml("tasks.yaml", wrong).problems).toMatchObject([
    { line: 3, path: "tasks.a.schedule.on", code: "SCHEDULE_INVALID" },
    { line: 5, path: "tasks.b.schedule.start", code: "RRULE_INVALID" },
  ]);
});

describe.each(everyPostgres())("recurring schedules on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  it.each(Object.entries(specs))(
    "%s is stored unchanged, and each of its slots is planned once, up to its end",
    async (kind, schedule) => {
      const session = await stage.session();
      const task = await stage.task(`recurring-${kind}`, { schedule });
      const { definition, nextSlotMs } = await stage.store.tasks.byName(task.name);
      expect(definition.schedule).toEqual(schedule);
      expect(nextSlotMs).toBe(slots[0]);
      const untilMs = Date.parse("2030-12-31T00:00:00Z");
      expect(await stage.plan([task], session, untilMs)).toBe(3);
      const ledger = await stage.rows("select slot_ms as at from $s.slot where task_id = $1 order by 1", [task.taskId]);
      expect(ledger.map(({ at }) => Number(at))).toEqual(slots);
      expect((await stage.store.tasks.byName(task.name)).nextSlotMs).toBeNull();
    },
  );
});
