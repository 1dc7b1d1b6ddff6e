/** Parses a date or time in the format of RFC 5545 (20260106T090000Z), or with separators (2026-01-06T09:00:00Z). */
import { CarillonError } from "../../base/errors.ts";
import { show } from "../given.ts";
import { dayMs, dayOfDate, dayText, localText } from "../local-times.ts";

/** `instant`: a time with Z. `local`: a time in the schedule's zone. `day`: a date, which means the local time at its beginning. */
export interface RuleTime {
  kind: "instant" | "local" | "day";
  ms: number;
}

const basic = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z)?)?$/;
const extended = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.0+)?)?(Z)?)?$/;

/**
 * @param what the name of the value in error messages
 * @param path the path of the value in errors
 * @throws RRULE_INVALID
 */
export function ruleTime(text: string, what: string, path: string): RuleTime {
  const found = basic.exec(text) ?? extended.exec(text.toUpperCase());
  const [year, month, date, hour, minute, second] = [1, 2, 3, 4, 5, 6].map((at) => Number(found?.[at] ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const day = found === null ? null : dayOfDate(year, month, date);
  if (found === null || day === null || hour > 23 || minute > 59 || second > 59)
    throw new CarillonError("RRULE_INVALID", `rrule: ${what}: ${show(text)} is not a time from 1900 to 2200`, {
      hint: 'Such as "20260106T090000" or "2026-01-06T09:00" in the zone of the schedule, or with Z after it in UTC.',
      path,
    });
  const ms = day * dayMs + ((hour * 60 + minute) * 60 + second) * 1000;
  return { kind: found[4] === undefined ? "day" : found[7] === undefined ? "local" : "instant", ms };
}

export const ruleTimeText = ({ kind, ms }: RuleTime): string =>
  kind === "day" ? dayText(ms / dayMs) : `${localText(ms)}${kind === "instant" ? "Z" : ""}`;

/** Formats a time in the format of RFC 5545. */
export const ruleTimeBasic = (time: RuleTime): string => ruleTimeText(time).replace(/[:-]/g, "");
