/**
 * Converts day fields for schedulers that fire only on days that match both the day of the month and the weekday. A cron fires on days that
 * match either field, except when one of the fields begins with a star; then both must match. A week of the month with a weekday is written
 * as MON#1.
 */
const weeks = ["1-7", "8-14", "15-21", "22-28", "29-31"];

const isOpen = (field: string): boolean => /^[*?](?:\/1)?$/.test(field);

/** @returns the day of the month and the weekday for a cron; undefined if no cron can express these days */
export function bothDays(day: string, weekday: string): [string, string] | undefined {
  if (isOpen(day) || isOpen(weekday) || day.startsWith("*") || weekday.startsWith("*")) return [day, weekday];
  const numbers = day.split(",").map((item) => weeks.indexOf(item) + 1);
  const days = weekday.split(",");
  if (numbers.includes(0) || days.some((one) => /[-/#L]/i.test(one))) return undefined;
  return ["*", days.flatMap((one) => numbers.map((number) => `${one}#${number}`)).join(",")];
}
