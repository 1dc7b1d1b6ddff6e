/**
 * Some schedulers fire only on days that match both day fields; a cron with two restricted fields fires on days that match either. A week
 * of the month on one weekday has a notation of its own (MON#1), and a field that begins with a star already requires both.
 */
const weeks = ["1-7", "8-14", "15-21", "22-28", "29-31"];

const isOpen = (field: string): boolean => /^[*?](?:\/1)?$/.test(field);

/** @returns the two day fields for a cron; undefined: no cron has these days */
export function bothDays(day: string, weekday: string): [string, string] | undefined {
  if (isOpen(day) || isOpen(weekday) || day.startsWith("*") || weekday.startsWith("*")) return [day, weekday];
  const numbers = day.split(",").map((item) => weeks.indexOf(item) + 1);
  const days = weekday.split(",");
  if (numbers.includes(0) || days.some((one) => /[-/#L]/i.test(one))) return undefined;
  return ["*", days.flatMap((one) => numbers.map((number) => `${one}#${number}`)).join(",")];
}
