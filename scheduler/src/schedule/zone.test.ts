import { describe, expect, it } from "vitest";
import { isCarillonError } from "../base/errors.ts";
import { endOfTime, type Span, Zone, zoneName, zoneOf } from "./zone.ts";

const ms = (text: string) => Date.parse(text);
/** Returns the transitions of a zone in [from, to), found by the zone's own methods. */
function transitions(zone: Zone, from: number, to: number): [at: string, minutes: number][] {
  const found: [string, number][] = [];
  for (let span: Span = zone.at(from); span.to < to; ) {
    const next = zone.at(span.to);
    if (next.offset !== span.offset) {
      expect(span.left).toBe(next.offset - span.offset);
      expect(next.entered).toBe(span.left);
      found.push([new Date(next.from).toISOString().replace(":00.000Z", "Z"), next.entered / 60_000]);
    }
    span = next;
  }
  return found;
}
const of = (name: string, from: string, to: string) => transitions(new Zone(name), ms(from), ms(to));

describe("the table of a zone's offsets", () => {
  it("is right after an interrupted search", () => {
    const zone = new Zone("Europe/Berlin");
    zone.at(ms("2026-06-01T00:00Z"));
    const format = Intl.DateTimeFormat;
    let left = 700;
    // 700 calls are enough to search some of the years, so the error ends the search in the middle.
    Intl.DateTimeFormat = function formatter(...given: ConstructorParameters<typeof format>) {
      const inner = new format(...given);
      return {
        format: (at: number) => {
          if (--left < 0) throw new Error("cut off");
          return inner.format(at);
        },
      };
    } as unknown as typeof format;
    try {
      expect(() => zone.at(ms("2036-06-01T00:00Z"))).toThrow("cut off");
    } finally {
      Intl.DateTimeFormat = format;
    }
    const fresh = new Zone("Europe/Berlin");
    for (let at = ms("2026-01-01T00:00Z"); at < ms("2037-01-01T00:00Z"); at += 10 * 86_400_000)
      expect([at, zone.at(at).offset, zone.at(at).to]).toEqual([at, fresh.at(at).offset, fresh.at(at).to]);
  });

  it("has unusual transitions", () => {
    expect(of("America/New_York", "2026-01-01T00:00Z", "2027-01-01T00:00Z")).toEqual([
      ["2026-03-08T07:00Z", 60],
      ["2026-11-01T06:00Z", -60],
    ]);
    expect(of("Pacific/Apia", "2011-12-01T00:00Z", "2012-02-01T00:00Z")).toEqual([["2011-12-30T10:00Z", 1440]]);
    expect(of("Pacific/Kwajalein", "1993-08-01T00:00Z", "1993-09-01T00:00Z")).toEqual([["1993-08-21T12:00Z", 1440]]);
    expect(of("Australia/Lord_Howe", "2024-01-01T00:00Z", "2025-01-01T00:00Z").map(([, minutes]) => minutes)).toEqual([
      -30, 30,
    ]);
    expect(of("Antarctica/Troll", "2024-01-01T00:00Z", "2025-01-01T00:00Z").map(([, minutes]) => minutes)).toEqual([
      120, -120,
    ]);
    // Two transitions only twelve days apart, and a summer time that is interrupted during Ramadan.
    expect(of("America/Argentina/Tucuman", "2004-05-01T00:00Z", "2004-07-01T00:00Z")).toEqual([
      ["2004-06-01T03:00Z", -60],
      ["2004-06-13T04:00Z", 60],
    ]);
    expect(of("Africa/Cairo", "2010-01-01T00:00Z", "2011-01-01T00:00Z").map(([, minutes]) => minutes)).toEqual([
      60, -60, 60, -60,
    ]);
    // In January 1972, Liberia changed from an offset of −44:30 minutes to UTC.
    expect(of("Africa/Monrovia", "1971-12-01T00:00Z", "1972-03-01T00:00Z")).toEqual([
      ["1972-01-07T00:44:30.000Z", 44.5],
    ]);
  });

  it("is equal whatever was queried before", () => {
    for (const name of ["Africa/Casablanca", "Asia/Gaza", "Pacific/Apia", "UTC"]) {
      const whole = new Zone(name);
      const [from, to] = [ms("2003-01-01T00:00Z"), ms("2031-01-01T00:00Z")];
      const expected = transitions(whole, from, to);
      const jumpy = new Zone(name);
      for (const at of ["2012-06-01", "2029-01-01", "2003-01-01", "2011-12-31", "2030-12-31"]) jumpy.at(ms(at));
      expect(transitions(jumpy, from, to)).toEqual(expected);
      for (let at = from; at < to; at += 11 * 86_400_000) expect(jumpy.at(at).offset).toBe(whole.at(at).offset);
    }
  });

  it("covers the time from the epoch to the last slot", () => {
    const zone = new Zone("Europe/Berlin");
    expect(zone.at(0).offset).toBe(3_600_000);
    expect(zone.at(endOfTime - 1).offset).toBe(3_600_000);
    expect(zone.at(ms("2200-07-01T00:00Z")).offset).toBe(7_200_000);
    expect(transitions(zone, ms("2199-01-01T00:00Z"), ms("2200-12-31T00:00Z"))).toHaveLength(4);
  });
});

describe("zone names", () => {
  it("are spelt as in the time zone database, and links are kept", () => {
    expect(zoneName("europe/berlin")).toBe("Europe/Berlin");
    expect(zoneName("ASIA/HO_CHI_MINH").toLowerCase()).toBe("asia/ho_chi_minh");
    expect(zoneName("utc")).toBe("UTC");
    expect(zoneName("us/pacific")).toBe("US/Pacific");
    expect(zoneName("US/Pacific")).toBe("US/Pacific");
    expect(zoneName("Europe/Kiev")).toBe("Europe/Kiev");
    expect(zoneName("etc/gmt+5")).toBe("Etc/GMT+5");
    for (const name of Intl.supportedValuesOf("timeZone")) expect(zoneName(name.toLowerCase())).toBe(name);
  });

  it("share one table per zone", () => {
    expect(zoneOf("america/chicago")).toBe(zoneOf("America/Chicago"));
  });

  it("are refused if invalid, on every runtime alike", () => {
    for (const value of [
      "",
      " UTC",
      "Mars/Base",
      "+08:00",
      "-0330",
      "GMT+8",
      "../etc",
      "UTC\u0000",
      5,
      null,
      undefined,
    ]) {
      expect(() => zoneName(value), String(value)).toThrow(
        expect.toSatisfy((error: unknown) => isCarillonError(error, "ZONE_UNKNOWN")),
      );
    }
  });
});
