/** The kinds of the options that exclude times from a task's slots. schedule/slot-rules.ts applies these options. */
import type { Json } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import type { BlackoutWindow } from "../../schedule/blackout.ts";
import type { CalendarRule } from "../../schedule/calendar.ts";
import {
  blackoutEnds,
  blackoutWindows,
  calendarDays,
  calendarMoves,
  calendarNameHint,
  calendarRule,
} from "../../schedule/slot-rules.ts";
import type { FieldShape, Kind, Shape } from "./kinds.ts";

const field = (shape: Shape, description: string, usual?: Json): FieldShape => ({
  shape,
  required: false,
  description,
  usual,
});
const text = (longest: number, isName = false): Shape => ({ is: "text", longest, isName });

/** Returns the parts as a JSON object, without parts that have their default. */
const sparse = (parts: [name: string, value: Json, usual?: Json][]): Json =>
  Object.fromEntries(parts.filter(([, value, usual]) => value !== usual).map(([name, value]) => [name, value]));

export const calendarKind: Kind<CalendarRule> = {
  shape: {
    is: "object",
    fields: {
      name: { ...field(text(100, true), "The calendar, as `carillon calendars set` stored it."), required: true },
      on: field({ is: "choice", values: calendarDays }, "The days on which it runs.", calendarDays[0]),
      otherwise: field(
        { is: "choice", values: calendarMoves },
        "What happens to a slot on another day.",
        calendarMoves[0],
      ),
    },
  },
  hint: calendarNameHint,
  read: (given, { task }) => calendarRule(task, given),
  write: ({ name, on, otherwise }) =>
    sparse([
      ["name", name],
      ["on", on, calendarDays[0]],
      ["otherwise", otherwise, calendarMoves[0]],
    ]),
};

const dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

export const blackoutKind: Kind<BlackoutWindow[]> = {
  shape: {
    is: "list",
    of: {
      is: "object",
      fields: {
        from: {
          ...field(text(50), 'Its beginning: a local time such as "22:00", or a moment with an offset.'),
          required: true,
        },
        to: { ...field(text(50), "Its end, the first time outside."), required: true },
        zone: field(text(100), "The time zone of local times.", "UTC"),
        days: field(
          { is: "list", of: text(20), most: 7 },
          'The days on which a window of local times begins, such as ["fri", "sat"]; without it every day.',
        ),
        // biome-ignore lint/suspicious/noThenProperty: an option's name.
        then: field({ is: "choice", values: blackoutEnds }, "What happens to a slot in it.", blackoutEnds[0]),
      },
    },
    most: limits.blackoutWindows,
  },
  hint: 'For example [{ from: "22:00", to: "06:00" }].',
  read: (given, { task }) => blackoutWindows(task, given),
  write: (windows) =>
    windows.map((window) =>
      "fromMs" in window
        ? sparse([
            ["from", new Date(window.fromMs).toISOString()],
            ["to", new Date(window.toMs).toISOString()],
            ["then", window.then, blackoutEnds[0]],
          ])
        : sparse([
            ["from", window.from],
            ["to", window.to],
            ["zone", window.zone, "UTC"],
            ["days", window.days === null ? null : window.days.map((day) => dayNames[day] as string), null],
            ["then", window.then, blackoutEnds[0]],
          ]),
    ),
};
