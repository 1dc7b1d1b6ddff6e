import { z } from "zod";
import { limits } from "../../base/limits.ts";
import { id, maybeTime, name, page, paged, reason, route, taskName, text, time, versionNumber } from "./route.ts";

const days = {
  zone: name(100).describe("The time zone in which a day begins, such as Europe/Berlin."),
  weekend: z.array(z.int().min(0).max(6)).max(7).describe("0 is Sunday."),
  holidays: z.array(z.string().max(10)).max(limits.calendarDays).describe("Such as 2026-12-25."),
};

const names = z.record(z.string().max(10), z.string().max(1_000));

const calendar = z
  .strictObject({
    name: name(limits.calendarNameLength),
    version: id,
    ...days,
    names: names.describe("What files call its days and those of the version before, by date."),
    author: z.string(),
    reason: z.string(),
    changed: time,
    tasks: z.array(taskName).describe("That use it."),
  })
  .meta({ id: "Calendar" });

const file = {
  ics: text(limits.icsBytes).optional().describe("An iCalendar file; the days that its events touch are holidays too."),
  strict: z.boolean().optional().describe("Refuse a file with a part that is not carried out."),
};
const notices = z
  .array(z.strictObject({ line: z.int(), message: z.string() }))
  .describe("Parts of the iCalendar file that are not carried out.");
const side = z.strictObject({
  zone: z.string(),
  weekend: days.weekend,
  coming: z.int().describe("Holidays from today on."),
});
const day = z.strictObject({ day: z.string(), name: z.string().nullable().describe("As a file calls it.") });
const place = z.strictObject({
  slot: time,
  due: maybeTime.describe("null: it does not run."),
  note: z.string().describe("Why it is moved, delayed, skipped or missed."),
});
const taskChanges = z.strictObject({
  task: taskName,
  total: z.int().describe("Slots that change, of a year ahead."),
  more: z.boolean().describe("There are at least `total`: the search ended early."),
  slots: z
    .array(z.strictObject({ slot: time.describe("By the task's schedule alone."), was: place, is: place }))
    .max(limits.comparedSlotsShown)
    .describe("The first of them."),
});

const params = z.strictObject({ calendar: name(limits.calendarNameLength).describe("The calendar's name.") });
const noun = "calendars" as const;

export const calendarRoutes = {
  listCalendars: route({
    touches: "listed",
    method: "GET",
    path: "/v1/calendars",
    noun,
    policy: "viewer",
    summary: "Calendars, by name",
    query: z.strictObject(paged),
    answer: page(calendar),
    errors: [],
  }),
  getCalendar: route({
    touches: "calendar",
    method: "GET",
    path: "/v1/calendars/{calendar}",
    noun,
    policy: "viewer",
    params,
    etag: "gives",
    summary: "A calendar's days",
    query: z.strictObject({ version: versionNumber.optional().describe("As it was then.") }),
    answer: calendar,
    errors: ["CALENDAR_UNKNOWN"],
  }),
  setCalendar: route({
    touches: "calendar",
    method: "PUT",
    path: "/v1/calendars/{calendar}",
    noun,
    policy: "editor",
    params,
    etag: "demands",
    summary: "Store a calendar, or its next version; the tasks that use it are planned anew",
    body: z.strictObject({
      ...days,
      ...file,
      names: names.optional().describe("What days are called, by date; a file's names are added."),
      allowShrink: z
        .boolean()
        .optional()
        .describe("Also where fewer than half of the coming holidays would be left, or none."),
      reason,
    }),
    answer: z.strictObject({ ...calendar.shape, notices }),
    large: true,
    errors: ["CALENDAR_INVALID", "CALENDAR_SHRINKS", "CALENDAR_STALE", "PRECONDITION_NEEDED", "ZONE_UNKNOWN"],
  }),
  compareCalendar: route({
    touches: "calendar",
    method: "POST",
    path: "/v1/calendars/{calendar}/compare",
    noun,
    policy: "viewer",
    params,
    asks: true,
    summary: "Which days would change, and which slots of which tasks, if this were stored",
    body: z.strictObject({ ...days, ...file }),
    answer: z.strictObject({
      name: name(limits.calendarNameLength),
      version: id.describe("The present one, which is compared with."),
      was: side,
      is: side,
      added: z.array(day),
      removed: z.array(day),
      shrinks: z
        .boolean()
        .describe("Fewer than half of the coming holidays are left: it is stored with allowShrink only."),
      tasks: z.array(taskChanges).describe("Tasks with a slot that changes."),
      tasksLeft: z.int().describe("Tasks that use it and were not looked at."),
      notices,
    }),
    large: true,
    errors: ["CALENDAR_INVALID", "CALENDAR_UNKNOWN", "ZONE_UNKNOWN"],
  }),
  removeCalendar: route({
    touches: "calendar",
    method: "DELETE",
    path: "/v1/calendars/{calendar}",
    noun,
    policy: "editor",
    params,
    summary: "Remove a calendar that no task uses",
    query: z.strictObject({ reason }),
    answer: null,
    errors: ["CALENDAR_UNKNOWN", "CALENDAR_USED"],
  }),
} as const;
