/** True for a day field that robfig/cron (used by Kubernetes) and cron-parser (BullMQ, pg-boss) treat as unrestricted. */
const isOpen = (field: string): boolean => field.split(",").some((item) => /^[*?](?:\/0*1)?$/.test(item));

const ranged = (field: string, range: string): string => field.replace(/(^|,)\*\//g, `$1${range}/`);

/**
 * Rewrites day fields of robfig/cron and cron-parser for Carillon. For "every second day" (a star with a step) and "Monday", these two fire
 * on days that match either field, because they treat a star with a step as restricted; Carillon and cron fire on days that match both.
 * With a range such as 1-31 in place of the star, all of them fire on days that match either field.
 */
export function eitherDay(expression: string): string {
  const fields = expression.trim().split(/\s+/);
  const [day = "", month = "", weekday = ""] = fields.slice(-3);
  // An expression with another number of fields is returned unchanged, so that the cron parser reads or refuses it.
  if (fields.length < 5 || fields.length > 6 || isOpen(day) || isOpen(weekday)) return expression;
  return [...fields.slice(0, -3), ranged(day, "1-31"), month, ranged(weekday, "0-6")].join(" ");
}
