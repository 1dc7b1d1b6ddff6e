/** Tests which days the BY parts of a rule permit. */
import { dayMs, dayOf, weekdayOf } from "../local-times.ts";
import type { NthWeekday, Rule } from "./rule.ts";

/** The parts of a rule that restrict days; null means any day. */
export type DayParts = Pick<Rule, "weekdays" | "monthDays" | "yearDays" | "weekNumbers" | "months" | "weekStart">;

/**
 * Returns a function that tests a day number.
 * @param counts the period, month or year, within which n-th weekdays such as 2TU are counted
 */
export function dayMatcher(parts: DayParts, counts: "month" | "year"): (day: number) => boolean {
  const { months, monthDays, yearDays, weekNumbers, weekdays, weekStart } = parts;
  const isDated = months !== null || monthDays !== null || yearDays !== null || weekdays?.some(({ nth }) => nth !== 0);
  return (day) => {
    if (weekdays !== null && !isDated && weekNumbers === null)
      return weekdays.some((one) => one.weekday === weekdayOf(day));
    const date = new Date(day * dayMs);
    const [year, month, dayOfMonth] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
    if (months !== null && !months.includes(month + 1)) return false;
    const left = dayOf(year, month + 1, 1) - day;
    if (monthDays !== null && !monthDays.includes(dayOfMonth) && !monthDays.includes(-left)) return false;
    const dayOfYear = day - dayOf(year, 0, 1) + 1;
    const leftOfYear = dayOf(year + 1, 0, 1) - day;
    if (yearDays !== null && !yearDays.includes(dayOfYear) && !yearDays.includes(-leftOfYear)) return false;
    if (weekNumbers !== null && !weekNumbersOf(day, weekStart).some((number) => weekNumbers.includes(number)))
      return false;
    if (weekdays === null) return true;
    const [at, rest] = counts === "month" ? [dayOfMonth, left] : [dayOfYear, leftOfYear];
    return weekdays.some((one) => isWeekday(one, weekdayOf(day), at, rest));
  };
}

/**
 * @param of the day's weekday
 * @param at the day's number within the month or year, from 1
 * @param left the same, counted from the end
 */
const isWeekday = ({ weekday, nth }: NthWeekday, of: number, at: number, left: number): boolean =>
  weekday === of && (nth === 0 || nth === (nth > 0 ? Math.ceil(at / 7) : -Math.ceil(left / 7)));

/** Returns the number of the day's week, counted from the beginning and from the end of the year that contains most of that week. */
function weekNumbersOf(day: number, weekStart: number): [number, number] {
  const fourth = day - ((weekdayOf(day) - weekStart + 7) % 7) + 3;
  const year = new Date(fourth * dayMs).getUTCFullYear();
  const at = Math.floor((fourth - dayOf(year, 0, 1)) / 7);
  const left = Math.floor((dayOf(year + 1, 0, 1) - 1 - fourth) / 7);
  return [at + 1, -left - 1];
}
