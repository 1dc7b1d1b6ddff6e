import { z } from "zod";
import { limits } from "../../base/limits.ts";
import { id, name, page, paged, reason, route, taskName, text, time, versionNumber } from "./route.ts";

const days = {
  zone: name(100),
  weekend: z.array(z.int().min(0).max(6)).max(7).describe("0 is Sunday."),
  holidays: z.array(z.string().max(10)).max(limits.calendarDays).describe("Such as 2026-12-25."),
};

const calendar = z
  .strictObject({
    name: name(limits.calendarNameLength),
    version: id,
    ...days,
    author: z.string(),
    reason: z.string(),
    changed: time,
    tasks: z.array(taskName).describe("That use it."),
  })
  .meta({ id: "Calendar" });

const params = z.strictObject({ calendar: name(limits.calendarNameLength) });
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
      ics: text(limits.icsBytes)
        .optional()
        .describe("An iCalendar file; the days that its events touch are holidays too."),
      strict: z.boolean().optional().describe("Refuse a file with a part that is not carried out."),
      reason,
    }),
    answer: z.strictObject({
      ...calendar.shape,
      notices: z
        .array(z.strictObject({ line: z.int(), message: z.string() }))
        .describe("Parts of the iCalendar file that are not carried out."),
    }),
    large: true,
    errors: ["CALENDAR_INVALID", "CALENDAR_STALE", "PRECONDITION_NEEDED", "ZONE_UNKNOWN"],
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
