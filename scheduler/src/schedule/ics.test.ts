import { describe, expect, it } from "vitest";
import { dayOfText } from "./calendar.ts";
import { holidaysOfIcs } from "./ics.ts";

const window = { fromDay: dayOfText("2026-01-01"), toDay: dayOfText("2028-12-31"), zone: "Europe/Berlin" };
const file = (...events: string[]) =>
  [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    ...events.flatMap((event) => ["BEGIN:VEVENT", ...event.split("\n"), "END:VEVENT"]),
    "END:VCALENDAR",
  ].join("\r\n");
const days = (...events: string[]) => holidaysOfIcs(file(...events), window);

describe("holidays of an ICS file", () => {
  it("are the days that events touch, their end not among them", () => {
    expect(days("DTSTART;VALUE=DATE:20261225")).toEqual(["2026-12-25"]);
    expect(days("DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261227")).toEqual([
      "2026-12-24",
      "2026-12-25",
      "2026-12-26",
    ]);
    expect(days("DTSTART;VALUE=DATE:20261224\nDURATION:P2D")).toEqual(["2026-12-24", "2026-12-25"]);
    expect(days("DTSTART:20261224T220000\nDTEND:20261225T000000")).toEqual(["2026-12-24"]);
    // 23:30 UTC is the next day in Berlin.
    expect(days("DTSTART:20261224T233000Z")).toEqual(["2026-12-25"]);
  });

  it("recur within the window only", () => {
    expect(days("DTSTART;VALUE=DATE:19700101\nRRULE:FREQ=YEARLY")).toEqual(["2026-01-01", "2027-01-01", "2028-01-01"]);
    expect(days("DTSTART;VALUE=DATE:20261126\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH")).toEqual([
      "2026-11-26",
      "2027-11-25",
      "2028-11-23",
    ]);
  });

  it("leave out what is excluded, cancelled or replaced", () => {
    expect(days("DTSTART;VALUE=DATE:20260501\nRRULE:FREQ=YEARLY\nEXDATE;VALUE=DATE:20270501")).toEqual([
      "2026-05-01",
      "2028-05-01",
    ]);
    expect(days("DTSTART;VALUE=DATE:20260501\nSTATUS:CANCELLED")).toEqual([]);
    expect(
      days(
        "UID:may\nDTSTART;VALUE=DATE:20260501\nRRULE:FREQ=YEARLY",
        "UID:may\nRECURRENCE-ID;VALUE=DATE:20270501\nDTSTART;VALUE=DATE:20270503",
      ),
    ).toEqual(["2026-05-01", "2027-05-03", "2028-05-01"]);
    expect(days("DTSTART;VALUE=DATE:20260501\nRDATE;VALUE=DATE:20260601,20260701")).toEqual([
      "2026-05-01",
      "2026-06-01",
      "2026-07-01",
    ]);
  });

  it.each([
    ["an empty text", ""],
    ["a text of another kind", "hello there"],
    ["a cut file", "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261225"],
    ["another component", "BEGIN:VCARD\r\nEND:VCARD"],
    ["an event without a start", file("SUMMARY:nothing")],
    ["a start that is no date", file("DTSTART;VALUE=DATE:christmas")],
    ["a rule of seconds", file("DTSTART:19700101T000000\nRRULE:FREQ=SECONDLY")],
    ["a date that never comes", file("DTSTART;VALUE=DATE:20260201\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30")],
    [
      "a rule that goes on and on",
      file(...Array.from({ length: 5 }, () => "DTSTART;VALUE=DATE:19800101\nRRULE:FREQ=DAILY")),
    ],
    ["a rule without sense", file("DTSTART;VALUE=DATE:20260201\nRRULE:FREQ=SOMETIMES")],
    ["a huge file", file(`SUMMARY:${"x".repeat(1024 * 1024)}`)],
  ])(
    "refuse %s",
    (_, text) => {
      expect(() => holidaysOfIcs(text, window)).toThrowError(expect.objectContaining({ code: "CALENDAR_INVALID" }));
    },
    60_000,
  );
});
