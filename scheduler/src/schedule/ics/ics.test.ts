import { describe, expect, it } from "vitest";
import { dayOfText } from "../calendar.ts";
import { zoneOf } from "../zone.ts";
import { holidaysOfIcs, readIcs } from "./ics.ts";
import { windowsZones } from "./windows-zones.ts";

const window = { fromDay: dayOfText("2026-01-01"), toDay: dayOfText("2028-12-31"), zone: "Europe/Berlin" };
const file = (...events: string[]) =>
  [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    ...events.flatMap((event) => ["BEGIN:VEVENT", ...event.split("\n"), "END:VEVENT"]),
    "END:VCALENDAR",
  ].join("\r\n");
const days = (...events: string[]) => holidaysOfIcs(file(...events), window);
/** Returns the notices about unsupported parts, each with its line. The first line of the first event is line 4. */
const notices = (...events: string[]) =>
  readIcs(file(...events), window).notices.map(({ line, message }) => `${line}: ${message}`);
const daily = "DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=DAILY;COUNT=3";

describe("holidays of an ICS file", () => {
  it("are the days that events touch, without the end day", () => {
    expect(days("DTSTART;VALUE=DATE:20261225")).toEqual(["2026-12-25"]);
    expect(days("DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261227")).toEqual([
      "2026-12-24",
      "2026-12-25",
      "2026-12-26",
    ]);
    expect(days("DTSTART;VALUE=DATE:20261224\nDURATION:P2D")).toEqual(["2026-12-24", "2026-12-25"]);
    expect(days("DTSTART:20261224T220000\nDTEND:20261225T000000")).toEqual(["2026-12-24"]);
    // 23:30 UTC on 24 December is 25 December in Berlin.
    expect(days("DTSTART:20261224T233000Z")).toEqual(["2026-12-25"]);
  });

  it("recur only within the window", () => {
    expect(days("DTSTART;VALUE=DATE:19700101\nRRULE:FREQ=YEARLY")).toEqual(["2026-01-01", "2027-01-01", "2028-01-01"]);
    expect(days("DTSTART;VALUE=DATE:20261126\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH")).toEqual([
      "2026-11-26",
      "2027-11-25",
      "2028-11-23",
    ]);
  });

  it("leave out excluded, cancelled and replaced occurrences", () => {
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
      file(...Array.from({ length: 8 }, () => "DTSTART;VALUE=DATE:19800101\nRRULE:FREQ=DAILY")),
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

  it.each([
    ["a day that no month has", "DTSTART;VALUE=DATE:20270230", 'line 4, DTSTART: "20270230"'],
    ["a month that is none", "DTSTART;VALUE=DATE:20261301", 'line 4, DTSTART: "20261301"'],
    ["an hour that is none", "DTSTART:20261201T250000", 'line 4, DTSTART: "20261201T250000"'],
    ["two starts", "DTSTART:20261201\nDTSTART:20261202", "line 5, DTSTART: is there twice, in line 4 too"],
    ["an end before the start", "DTSTART:20261224\nDTEND:20261223", "line 5, DTEND: the end lies before the start"],
    ["an end in 9999", "DTSTART:20261224\nDTEND:99991231", 'line 5, DTEND: "99991231"'],
    ["an end in eleven years", "DTSTART:20261224\nDTEND:20371224", "line 5, DTEND: the event lasts for 4018 days"],
    ["a long duration", "DTSTART:20261224\nDURATION:P4000D", "line 5, DURATION: the event lasts for 4000 days"],
    ["a negative duration", "DTSTART:20261224\nDURATION:-P1D", 'line 5, DURATION: "-P1D"'],
    ["an interval of 0", "DTSTART:20261224\nRRULE:FREQ=DAILY;INTERVAL=0", "line 5, RRULE: INTERVAL=0"],
    ["a date left out that is none", `${daily}\nEXDATE:20260231`, 'line 6, EXDATE: "20260231"'],
    ["an unknown kind of time", "DTSTART;VALUE=URI:20261224", "line 4, DTSTART: VALUE=URI"],
    ["a line without a colon", "DTSTART:20261224\nSUMMARY", 'line 5: "SUMMARY" is not NAME:VALUE'],
    ["a wrong zone definition", "DTSTART:20261224\nEND:VCALENDAR", "line 5, END: VCALENDAR ends where VEVENT is open"],
  ])("refuse %s, and name its line", (_, event, message) => {
    expect(() => days(event)).toThrowError(
      expect.objectContaining({ code: "CALENDAR_INVALID", message: expect.stringContaining(message) }),
    );
  });

  it("are refused if there is no event, and reported if no event gives a day", () => {
    expect(() => days()).toThrowError(expect.objectContaining({ message: expect.stringContaining("no event") }));
    expect(notices("DTSTART:20010101")).toEqual(["1: none of the 1 events gives a day from 2026-01-01 to 2028-12-31"]);
  });

  it("are read in the forms that programs write", () => {
    expect(days("DTSTART;VALUE=DATE:2027-08-15")).toEqual(["2027-08-15"]);
    expect(days("DTSTART:20261224")).toEqual(["2026-12-24"]);
    expect(days("DTSTART:20261224\nDTEND:20261224")).toEqual(["2026-12-24"]);
    expect(days("dtstart;value=date:20260501\nrrule:freq=yearly;until=20270501t000000z")).toEqual([
      "2026-05-01",
      "2027-05-01",
    ]);
    const first = file("DTSTART:20260101");
    expect(holidaysOfIcs(`\uFEFF${first}\r\n${file("DTSTART:20260102")}\r\n`, window)).toEqual([
      "2026-01-01",
      "2026-01-02",
    ]);
    expect(days("DTSTART;TZID=(UTC+01:00) Amsterdam, Berlin, Bern:20260301T090000")).toEqual(["2026-03-01"]);
    expect(holidaysOfIcs(first.replace("DTSTART:2026", "DTSTART:20\r\n 26"), window)).toEqual(["2026-01-01"]);
  });

  describe("of a series of all-day events", () => {
    // Exchange and Google write midnight in the user's zone as a UTC time. These values mean 6 January in Berlin.
    it.each([
      "EXDATE:20260105T230000Z",
      "EXDATE;TZID=Europe/Berlin:20260106T000000",
      "EXDATE;TZID=W. Europe Standard Time:20260106T000000",
      "EXDATE;VALUE=DATE:20260106",
      "EXDATE:20260106",
      "EXDATE:20260106T000000",
      "EXDATE:20260106T000000Z",
    ])("do not contain the day of %s", (line) => {
      expect(days(`${daily}\n${line}`)).toEqual(["2026-01-05", "2026-01-07"]);
    });

    it.each([
      ["UNTIL=20260105T230000Z", "Europe/Berlin"],
      ["UNTIL=20260106T225959Z", "Europe/Berlin"],
      ["UNTIL=20260106T050000Z", "America/New_York"],
      ["UNTIL=20260105T150000Z", "Asia/Tokyo"],
      ["UNTIL=20260106T000000Z", "America/New_York"],
      ["UNTIL=20260106T235959Z", "Asia/Tokyo"],
      ["UNTIL=20260106", "Asia/Tokyo"],
      ["UNTIL=20260106T000000", "Asia/Tokyo"],
    ])("end with the day of %s, written in %s", (until, zone) => {
      const text = file(`DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=DAILY;${until}`);
      const named = text.replace("VERSION:2.0", `VERSION:2.0\r\nX-WR-TIMEZONE:${zone}`);
      expect(holidaysOfIcs(named, window)).toEqual(["2026-01-05", "2026-01-06"]);
      // Times of a file that names no zone are read in the calendar's zone.
      expect(holidaysOfIcs(text, { ...window, zone })).toEqual(["2026-01-05", "2026-01-06"]);
    });
  });

  it("compare instants and zoned times with the event's local time", () => {
    // 19:00 in New York is midnight UTC of the next day, so these values of UNTIL and EXDATE refer to the evening before.
    const evening = (rest: string) => days(`DTSTART;TZID=Eastern Standard Time:20260105T190000\n${rest}`);
    expect(evening("RRULE:FREQ=DAILY;UNTIL=20260107T000000Z")).toEqual(["2026-01-05", "2026-01-06"]);
    expect(evening("RRULE:FREQ=DAILY;COUNT=3\nEXDATE:20260107T000000Z")).toEqual(["2026-01-05", "2026-01-07"]);
    expect(evening("RRULE:FREQ=DAILY;COUNT=3\nEXDATE;TZID=Europe/Berlin:20260107T010000")).toEqual([
      "2026-01-05",
      "2026-01-07",
    ]);
    expect(evening("RRULE:FREQ=DAILY;COUNT=3\nEXDATE;VALUE=DATE:20260106")).toEqual(["2026-01-05", "2026-01-07"]);
    expect(evening("RRULE:FREQ=DAILY;UNTIL=20260106")).toEqual(["2026-01-05", "2026-01-06"]);
    expect(days("DTSTART:20260105T233000Z\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE;VALUE=DATE:20260107")).toEqual([
      "2026-01-06",
      "2026-01-08",
    ]);
  });

  it("use a zone's definition in the file", () => {
    const defined = [
      "BEGIN:VTIMEZONE",
      "TZID:Head office",
      "BEGIN:STANDARD",
      "DTSTART:16010101T030000",
      "TZOFFSETFROM:-0400",
      "TZOFFSETTO:-0500",
      "RRULE:FREQ=YEARLY;BYDAY=1SU;BYMONTH=11",
      "END:STANDARD",
      "BEGIN:DAYLIGHT",
      "DTSTART:16010101T020000",
      "TZOFFSETFROM:-0500",
      "TZOFFSETTO:-0400",
      "RRULE:FREQ=YEARLY;BYDAY=2SU;BYMONTH=3",
      "END:DAYLIGHT",
      "END:VTIMEZONE",
    ].join("\r\n");
    const text = (rest: string) => file(rest).replace("BEGIN:VEVENT", `${defined}\r\nBEGIN:VEVENT`);
    const evening = (day: string, left: string) =>
      readIcs(text(`DTSTART;TZID=Head office:${day}T190000\nRRULE:FREQ=DAILY;COUNT=2\nEXDATE:${left}Z`), window);
    expect(evening("20260105", "20260107T000000")).toMatchObject({ days: ["2026-01-05"], notices: [] });
    expect(evening("20260705", "20260706T230000")).toMatchObject({ days: ["2026-07-05"], notices: [] });
    expect(() =>
      holidaysOfIcs(
        text("DTSTART;TZID=Head office:20260105T190000").replace("TZOFFSETTO:-0500", "TZOFFSETTO:west"),
        window,
      ),
    ).toThrowError(expect.objectContaining({ message: expect.stringContaining('line 8, TZOFFSETTO: "west"') }));
    expect(() =>
      holidaysOfIcs(text("DTSTART;TZID=Head office:20260105T190000").replace("TZOFFSETTO:-0500\r\n", ""), window),
    ).toThrowError(
      expect.objectContaining({ message: expect.stringContaining("line 5, STANDARD: has no TZOFFSETTO") }),
    );
  });

  it("accept every Windows zone name", () => {
    for (const zone of Object.values(windowsZones)) expect(zoneOf(zone).name).not.toBe("");
    expect(Object.keys(windowsZones)).toHaveLength(139);
    expect(notices("DTSTART;TZID=/citadel.org/20210210_1/Europe/Berlin:20260105T190000")).toEqual([]);
    expect(notices("DTSTART;TZID=Mars:20260105T190000\nDTEND;TZID=Mars:20260105T200000")).toEqual([
      "4: DTSTART: TZID=Mars is not a known zone: its times are taken as written",
    ]);
    const named = file("DTSTART;TZID=Mars:20260105T190000").replace("VERSION:2.0", "VERSION:2.0\r\nX-WR-TIMEZONE:Mars");
    expect(
      readIcs(named, window).notices.map(({ message }) => message),
      "also if the file itself is in that zone",
    ).toEqual([expect.stringContaining("TZID=Mars is not a known zone")]);
  });

  it("use the event that replaces an occurrence, however it names the occurrence", () => {
    const series = "UID:a\nDTSTART;TZID=Europe/Berlin:20260105T090000\nRRULE:FREQ=DAILY;COUNT=3";
    for (const at of [
      ":20260106T080000Z",
      ";TZID=Europe/Berlin:20260106T090000",
      ";VALUE=DATE:20260106",
      ";TZID=America/New_York:20260106T030000",
    ]) {
      const moved = `UID:a\nRECURRENCE-ID${at}\nDTSTART;TZID=Europe/Berlin:20260109T090000`;
      expect(days(series, moved), at).toEqual(["2026-01-05", "2026-01-07", "2026-01-09"]);
      expect(days(`UID:a\nRECURRENCE-ID${at}\nSTATUS:CANCELLED`, series), at).toEqual(["2026-01-05", "2026-01-07"]);
    }
    const whole = (at: string) => days(`UID:a\n${daily}`, `UID:a\nRECURRENCE-ID${at}\nDTSTART;VALUE=DATE:20260109`);
    for (const at of [":20260105T230000Z", ":20260106T000000Z", ";TZID=Europe/Berlin:20260106T000000"])
      expect(whole(at), at).toEqual(["2026-01-05", "2026-01-07", "2026-01-09"]);
  });

  it("use the latest version of an event", () => {
    const version = (sequence: number, day: number, rest = "") =>
      `UID:a\nSEQUENCE:${sequence}\nDTSTART;VALUE=DATE:2026010${day}${rest}`;
    expect(days(version(2, 5), version(10, 6), version(1, 7))).toEqual(["2026-01-06"]);
    expect(days(version(0, 5), version(1, 5, "\nSTATUS:CANCELLED"), "UID:b\nDTSTART:20260108")).toEqual(["2026-01-08"]);
    const moved = (sequence: number, day: number) => `${version(sequence, day)}\nRECURRENCE-ID;VALUE=DATE:20260106`;
    expect(days(`UID:a\n${daily}`, moved(1, 8), moved(2, 9))).toEqual(["2026-01-05", "2026-01-07", "2026-01-09"]);
    // All events without a UID are read, and so are all events with the same UID and the same SEQUENCE.
    expect(days("DTSTART:20260105", "SEQUENCE:1\nDTSTART:20260106")).toHaveLength(2);
    expect(days("UID:all\nDTSTART:20260105", "UID:all\nDTSTART:20260106")).toHaveLength(2);
    expect(() => days("SEQUENCE:one\nDTSTART:20260105")).toThrowError(/line 4, SEQUENCE: "one"/);
  });

  it("change from an occurrence on if the event says THISANDFUTURE", () => {
    const series = "UID:a\nDTSTART;VALUE=DATE:20260105\nRRULE:FREQ=WEEKLY;COUNT=5";
    const later = (from: string, rest: string) => `UID:a\nRECURRENCE-ID;RANGE=THISANDFUTURE:${from}\n${rest}`;
    const moved = later("20260119", "DTSTART:20260120\nDTEND:20260122");
    expect(days(series, moved)).toEqual([
      ...["2026-01-05", "2026-01-12", "2026-01-20", "2026-01-21"],
      ...["2026-01-27", "2026-01-28", "2026-02-03", "2026-02-04"],
    ]);
    // RECURRENCE-ID names one occurrence by its original date, even after a change to the series.
    const single = "UID:a\nRECURRENCE-ID:20260126\nDTSTART:20260301";
    expect(days(series, moved, single, later("20260202", "STATUS:CANCELLED"))).toEqual([
      ...["2026-01-05", "2026-01-12", "2026-01-20", "2026-01-21", "2026-03-01"],
    ]);
    const narrow = { ...window, fromDay: dayOfText("2026-12-01"), toDay: dayOfText("2026-12-31") };
    const far = file("UID:a\nDTSTART:20260105\nRRULE:FREQ=YEARLY;COUNT=2", later("20260105", "DTSTART:20261205"));
    expect(holidaysOfIcs(far, narrow)).toEqual(["2026-12-05"]);
  });

  it("recur as RFC 5545 defines", () => {
    const far = { ...window, fromDay: dayOfText("2020-01-01"), toDay: dayOfText("2032-12-31") };
    const recurring = (start: string, rule: string) =>
      holidaysOfIcs(file(`DTSTART;VALUE=DATE:${start}\nRRULE:${rule}`), far);
    expect(recurring("20200229", "FREQ=YEARLY")).toEqual(["2020-02-29", "2024-02-29", "2028-02-29", "2032-02-29"]);
    expect(recurring("20260518", "FREQ=YEARLY;BYDAY=20MO;COUNT=3")).toEqual(["2026-05-18", "2027-05-17", "2028-05-15"]);
    expect(recurring("20201228", "FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO")).toEqual([
      "2020-12-28",
      "2026-12-28",
      "2032-12-27",
    ]);
    // An event for whole days has no times of day, so BYHOUR is ignored.
    expect(days("DTSTART:20260105\nRRULE:FREQ=DAILY;BYHOUR=9,17;COUNT=2\nEXDATE:20260106")).toEqual(["2026-01-05"]);
  });

  it("support EXDATE without a rule, RDATE with periods, EXRULE and several rules", () => {
    expect(days("DTSTART:20260105\nEXDATE:20260105\nRDATE:20260107")).toEqual(["2026-01-07"]);
    expect(
      days(
        "DTSTART:20260105T090000\nDTEND:20260105T100000\nRDATE;VALUE=PERIOD:20260107T090000/20260108T120000,20260201T000000/P2D",
      ),
    ).toEqual(["2026-01-05", "2026-01-07", "2026-01-08", "2026-02-01", "2026-02-02"]);
    expect(days("DTSTART:20260105\nRRULE:FREQ=DAILY;COUNT=5\nEXRULE:FREQ=DAILY;INTERVAL=2")).toEqual([
      "2026-01-06",
      "2026-01-08",
    ]);
    expect(days(`${daily}\nRRULE:FREQ=WEEKLY;COUNT=2`)).toEqual([
      "2026-01-05",
      "2026-01-06",
      "2026-01-07",
      "2026-01-12",
    ]);
  });

  it("are complete, or unsupported parts are reported", () => {
    expect(notices(daily)).toEqual([]);
    expect(notices("DTSTART:20260105\nRRULE:RSCALE=GREGORIAN;FREQ=YEARLY;SKIP=OMIT")).toEqual([]);
    expect(notices("DTSTART:20260105\nRRULE:RSCALE=HEBREW;FREQ=YEARLY")).toEqual([
      "5: RRULE: RSCALE=HEBREW is not supported, and the rule is left out",
    ]);
    expect(notices("DTSTART:20260105\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH")).toEqual([
      "4: DTSTART is not one of the days of its RRULE, and does not count",
    ]);
    expect(
      notices(
        `UID:a\n${daily}`,
        "UID:a\nRECURRENCE-ID;RANGE=THISANDPRIOR:20260106\nDTSTART:20260107\nRRULE:FREQ=DAILY",
      ),
    ).toEqual([
      "10: RECURRENCE-ID: RANGE=THISANDPRIOR is not supported: this one occurrence alone is replaced",
      "12: RRULE is left out: the event replaces one occurrence of another",
    ]);
    expect(() => readIcs(file("DTSTART;TZID=Mars:20260105T190000"), window, true)).toThrowError(
      expect.objectContaining({
        code: "CALENDAR_INVALID",
        message: expect.stringMatching(/^calendar: line 4, DTSTART: TZID=Mars is not a known zone: [^(]*$/),
      }),
    );
    expect(() =>
      readIcs(file("DTSTART;TZID=A:20010101T000000", "DTSTART;TZID=B:20010101T000000"), window, true),
    ).toThrow("(and 2 more)");
    expect(readIcs(file(daily), window, true).notices).toEqual([]);
    const many = Array.from({ length: 300 }, () => "DTSTART:20260105\nRRULE:RSCALE=HEBREW;FREQ=YEARLY");
    expect(notices(...many).slice(199)).toEqual([
      expect.stringContaining("801: RRULE: RSCALE=HEBREW is not supported"),
      "805: and 100 more from this line on",
    ]);
    const todo = file(daily).replace("END:VCALENDAR", "BEGIN:VTODO\r\nEND:VTODO\r\nEND:VCALENDAR");
    expect(readIcs(todo, window).notices).toEqual([
      { line: 7, message: "VTODO is left out: only events (VEVENT) give days" },
    ]);
  });
});
