/** In robfig/cron (Kubernetes) and cron-parser (BullMQ, pg-boss) only these leave a day field unrestricted. */
const isOpen = (field: string): boolean => field.split(",").some((item) => /^[*?](?:\/0*1)?$/.test(item));

const ranged = (field: string, range: string): string => field.replace(/(^|,)\*\//g, `$1${range}/`);

/**
 * Where both day fields are restricted, either is enough. To those two a star with a step is restricted: odd days or Mondays.
 * Here, as in cron, a field that begins with a star is not: odd days that are Mondays. As a range it says the same to all.
 */
export function eitherDay(expression: string): string {
  const fields = expression.trim().split(/\s+/);
  const [day = "", month = "", weekday = ""] = fields.slice(-3);
  // What has not five or six fields comes back as it is, for the parser to read or refuse.
  if (fields.length < 5 || fields.length > 6 || isOpen(day) || isOpen(weekday)) return expression;
  return [...fields.slice(0, -3), ranged(day, "1-31"), month, ranged(weekday, "0-6")].join(" ");
}
