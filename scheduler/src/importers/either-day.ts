/** The forms of a day field that robfig/cron (Kubernetes) and cron-parser (BullMQ, pg-boss) treat as unrestricted. */
const isOpen = (field: string): boolean => field.split(",").some((item) => /^[*?](?:\/0*1)?$/.test(item));

const ranged = (field: string, range: string): string => field.replace(/(^|,)\*\//g, `$1${range}/`);

/**
 * If both day fields are restricted, days that match either of them fire. robfig/cron and cron-parser treat a star with a step as
 * restricted: odd days or Mondays. Carillon and cron do not: odd days that are Mondays. Written as a range, the field has the first meaning
 * everywhere.
 */
export function eitherDay(expression: string): string {
  const fields = expression.trim().split(/\s+/);
  const [day = "", month = "", weekday = ""] = fields.slice(-3);
  // An expression without five or six fields is returned unchanged, for the parser to read or refuse.
  if (fields.length < 5 || fields.length > 6 || isOpen(day) || isOpen(weekday)) return expression;
  return [...fields.slice(0, -3), ranged(day, "1-31"), month, ranged(weekday, "0-6")].join(" ");
}
