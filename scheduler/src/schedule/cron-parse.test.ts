import { describe, expect, it } from "vitest";
import { caught } from "../../test/support/caught.ts";
import { cutOffAfter } from "../base/cut-off.ts";
import { parseCron, tidyCron } from "./cron-parse.ts";

const utc = (text: string) => Date.parse(`${text}Z`);
const iso = (ms: number) => new Date(ms).toISOString().slice(0, 19);
const next = (expression: string, from: string, count = 3) => {
  const cron = parseCron(expression);
  const found: string[] = [];
  for (let at = cron.nextLocal(utc(from)); found.length < count && at < Number.POSITIVE_INFINITY; ) {
    found.push(iso(at));
    at = cron.nextLocal(at + 1000);
  }
  return found;
};

describe("the meaning of an expression", () => {
  const from = "2026-02-10T00:00:00";
  const table: [expression: string, ...slots: string[]][] = [
    ["0 0 L * *", "2026-02-28T00:00:00", "2026-03-31T00:00:00", "2026-04-30T00:00:00"],
    ["0 0 L-3 * *", "2026-02-25T00:00:00", "2026-03-28T00:00:00", "2026-04-27T00:00:00"],
    ["0 0 LW * ?", "2026-02-27T00:00:00", "2026-03-31T00:00:00", "2026-04-30T00:00:00"],
    // In 2026, 15 February and 15 March are Sundays, and 15 April is a Wednesday.
    ["0 0 15W * *", "2026-02-16T00:00:00", "2026-03-16T00:00:00", "2026-04-15T00:00:00"],
    // 1 August 2026 is a Saturday; the nearest weekday in its month is Monday the 3rd.
    ["0 0 1W 8 *", "2026-08-03T00:00:00"],
    // 31 May 2026 is a Sunday; the nearest weekday is Friday the 29th, because Monday is in June.
    ["0 0 31W 5 *", "2026-05-29T00:00:00"],
    ["0 0 * * 5L", "2026-02-27T00:00:00", "2026-03-27T00:00:00", "2026-04-24T00:00:00"],
    ["0 0 * * fril", "2026-02-27T00:00:00"],
    ["0 0 * * FRI#2", "2026-02-13T00:00:00", "2026-03-13T00:00:00"],
    ["0 0 * * SUN#5", "2026-03-29T00:00:00", "2026-05-31T00:00:00"],
    ["0 0 * * 0", "2026-02-15T00:00:00"],
    ["0 0 * * 7", "2026-02-15T00:00:00"],
    ["0 0 * * FRI-MON", "2026-02-13T00:00:00", "2026-02-14T00:00:00", "2026-02-15T00:00:00"],
    ["0 22-2/2 * * *", "2026-02-10T00:00:00", "2026-02-10T02:00:00", "2026-02-10T22:00:00"],
    ["30 0 0 1 1 ? 2030", "2030-01-01T00:00:30"],
    ["0 0 29 2 *", "2028-02-29T00:00:00", "2032-02-29T00:00:00"],
    ["@weekly", "2026-02-15T00:00:00"],
    ["@Monthly", "2026-03-01T00:00:00"],
    ["  0   12\t* * *  ", "2026-02-10T12:00:00"],
    // If both day fields are restricted, a day must match at least one field; if one field begins with a star, a day must match both
    // fields.
    ["0 0 13 * FRI", "2026-02-13T00:00:00", "2026-02-20T00:00:00"],
    ["0 0 */2 * MON", "2026-02-23T00:00:00", "2026-03-09T00:00:00"],
    ["0 0 ? * MON", "2026-02-16T00:00:00"],
  ];
  it.each(table)("%s", (expression, ...slots) => {
    expect(next(expression, from, slots.length)).toEqual(slots);
  });

  it("finds 29 February on a Monday, also across 2100, which is not a leap year", () => {
    expect(next("0 0 */29,29 2 MON#5", "2026-01-01T00:00:00")).toEqual([
      "2044-02-29T00:00:00",
      "2072-02-29T00:00:00",
      "2112-02-29T00:00:00",
    ]);
    expect(next("0 0 29 2 ?", "2096-03-01T00:00:00", 1)).toEqual(["2104-02-29T00:00:00"]);
  });

  it("ends with past years and with the last supported year", () => {
    expect(next("0 0 0 1 1 ? 1980,1990", "2026-01-01T00:00:00")).toEqual([]);
    expect(next("0 0 1 1 *", "2199-06-01T00:00:00")).toEqual(["2200-01-01T00:00:00"]);
    expect(parseCron("0 0 0 1 1 ? 1980").previousLocal(utc("2026-01-01T00:00:00"))).toBe(utc("1980-01-01T00:00:00"));
    expect(parseCron("0 0 0 1 1 ? 1980").previousLocal(utc("1979-01-01T00:00:00"))).toBe(Number.NEGATIVE_INFINITY);
  });

  it("normalises the white space of the text", () => {
    expect(tidyCron(" 0  0\t* * * ")).toBe("0 0 * * *");
  });
});

describe("refused expressions", () => {
  const table: [expression: string, code: string, says: RegExp, hint: RegExp][] = [
    ["", "CRON_INVALID", /0 fields/, /minute, hour/],
    ["* * * *", "CRON_INVALID", /4 fields/, /"\* \* \* \* \*"/],
    ["* * * * * * * *", "CRON_INVALID", /8 fields/, /seconds come first/],
    ["60 * * * *", "CRON_INVALID", /minute: "60".*0-59/, /is 0/],
    ["0 24 * * *", "CRON_INVALID", /hour: "24".*0-23/, /Midnight is hour 0/],
    ["0 0 0 * *", "CRON_INVALID", /day of month: "0".*1-31/, /nearest allowed value is 1/],
    ["0 0 * 13 *", "CRON_INVALID", /month: "13".*1-12/, /is 12/],
    ["0 0 * * 8", "CRON_INVALID", /day of week: "8".*0-7/, /Sunday 0 or 7/],
    ["0 0 * * MOND", "CRON_INVALID", /day of week: "MOND"/, /Did you mean MON/],
    ["0 0 * JUM *", "CRON_INVALID", /month: "JUM"/, /Did you mean JUN/],
    ["*/90 * * * *", "CRON_INVALID", /minute: .*step "90"/, /every\("90m"\)/],
    ["*/0 * * * *", "CRON_INVALID", /step "0"/, /from 1/],
    ["? * * * *", "CRON_INVALID", /minute: .*\?/, /write \*/],
    ["1,,2 * * * *", "CRON_INVALID", /minute: an empty item/, /one value/],
    ["1- * * * *", "CRON_INVALID", /minute: "1-"/, /each side/],
    ["1-2-3 * * * *", "CRON_INVALID", /minute: "1-2-3"/, /number/],
    ["1.5 * * * *", "CRON_INVALID", /minute/, /whole numbers/],
    ["-5 * * * *", "CRON_INVALID", /minute: "-5"/, /each side/],
    ["H * * * *", "CRON_INVALID", /minute: "H"/, /jitter/],
    ["１ * * * *", "CRON_INVALID", /minute/, /number/],
    ["0 0 L-31 * *", "CRON_INVALID", /back 31/, /L-30/],
    ["0 0 32W * *", "CRON_INVALID", /day of month: "32W"/, /31/],
    ["0 0 WL * *", "CRON_INVALID", /WL/, /LW/],
    ["0 0 * * L", "CRON_INVALID", /L without a day/, /SATL/],
    ["0 0 * * FRI#6", "CRON_INVALID", /#6/, /#1 to #5/],
    ["0 0 * * 15W", "CRON_INVALID", /day of week/, /W belongs to the day of month/],
    ["0 0 0 1 1 ? 2030-2028", "CRON_INVALID", /backwards/, /2028-2030/],
    ["0 0 0 1 1 ? 1969", "CRON_INVALID", /year: "1969"/, /1970/],
    ["0 0 0 1 1 ? 2500", "SLOT_TOO_FAR", /2500 is after 2200/, /2200/],
    ["0 0 30 2 *", "CRON_NEVER", /no such date/, /L is/],
    ["0 0 31 4,6,9,11 ?", "CRON_NEVER", /no such date/, /L is/],
    ["0 0 0 29 2 ? 2100", "CRON_NEVER", /no such date/, /leap year/],
    ["@every 5m", "CRON_INVALID", /@every/, /every\("5m"\)/],
    ["@reboot", "CRON_INVALID", /@reboot/, /manual/],
    ["@dayly", "CRON_INVALID", /@dayly/, /@daily/],
    ["12:30", "CRON_INVALID", /1 field/, /"30 12 \* \* \*"/],
    ["every 5 minutes", "CRON_INVALID", /3 fields/, /every\("5m"\)/],
    ["CRON_TZ=Asia/Tokyo 0 0 * * *", "CRON_INVALID", /begins with a zone/, /zone: "Asia\/Tokyo"/],
    ["0 */2 * * * America/New_York", "CRON_INVALID", /ends with a zone/, /zone: "America\/New_York"/],
  ];
  it.each(table)("%s → %s", (expression, code, says, hint) => {
    const error = caught(() => parseCron(expression));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(says);
    expect(error.hint).toMatch(hint);
  });

  it("huge texts and impossible dates are refused without an exhaustive search", () => {
    const bombs = [
      `${Array.from({ length: 5000 }, (_, i) => i % 60).join()} * * * *`,
      "*".repeat(1_000_000),
      "*/".repeat(500_000),
      `${"9".repeat(200)} * * * *`,
      "0 0 30 2 *",
      "0 0 */31,31 2 *",
    ];
    for (const bomb of bombs) {
      // This takes a few milliseconds. Code that tested each second of all years, or rescanned the rest of a long text, would take minutes.
      const error = caught(() => cutOffAfter(60_000, () => parseCron(bomb)));
      expect(["CRON_INVALID", "CRON_NEVER"]).toContain(error.code);
      expect(error.message.length).toBeLessThan(300);
    }
  });
});
