/** True for a day field that robfig/cron (used by Kubernetes) and cron-parser (BullMQ, pg-boss) treat as unrestricted. */
const isOpen = (field: string): boolean => field.split(",").some((item) => /^[*?](?:\/0*1)?$/.test(item));

const ranged = (field: string, range: string): string => field.replace(/(^|,)\*\//g, `$1${range}/`);

/**
 * If both day fields of an expression of robfig/cron or cron-parser are restricted, replaces a star with a step in them by a
 * range such as 1-31. These two programs fire on days that match either field, even if one field is a star with a step; Carillon
 * would require both.
 */
export function eitherDay(expression: string): string {
  const fields = expression.trim().split(/\s+/);
  const [day = "", month = "", weekday = ""] = fields.slice(-3);
  // An expression with another number of fields is returned unchanged, so that the cron parser reads or refuses it.
  if (fields.length < 5 || fields.length > 6 || isOpen(day) || isOpen(weekday)) return expression;
  return [...fields.slice(0, -3), ranged(day, "1-31"), month, ranged(weekday, "0-6")].join(" ");
}
