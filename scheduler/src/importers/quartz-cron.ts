/**
 * Converts cron expressions of Quartz, which XXL-JOB uses too, to Carillon's dialect. Quartz numbers weekdays from 1 (Sunday) to 7, and
 * Carillon from 0 to 6, so weekday numbers become names, and a weekday field with a step becomes a list of names.
 */
const days = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const dayAt = (text: string): number => {
  const named = days.indexOf(text.toUpperCase());
  return named >= 0 ? named : /^[1-7]$/.test(text) ? Number(text) - 1 : -1;
};

function dayItem(item: string): string {
  // In Quartz, L alone in the weekday field means the last day of the week, Saturday.
  if (item.toUpperCase() === "L") return "SAT";
  const [, one = "", last = "", step] = /^([a-z]{3}|\d|\*)(?:-([a-z]{3}|\d))?(?:\/(\d+))?$/i.exec(item) ?? [];
  if (step !== undefined) {
    const from = one === "*" ? 0 : dayAt(one);
    const to = last === "" ? 6 : dayAt(last);
    const by = Number(step);
    if (from < 0 || to < 0 || by === 0) return item;
    const length = (to - from + 7) % 7;
    return Array.from({ length: Math.floor(length / by) + 1 }, (_, k) => days[(from + k * by) % 7]).join(",");
  }
  return item.replace(
    /^([a-z]{3}|[1-7])(?:-([a-z]{3}|[1-7]))?(?=$|L$|#)/i,
    (whole, a: string, b: string | undefined) => {
      const [from, to] = [dayAt(a), b === undefined ? -1 : dayAt(b)];
      if (from < 0 || (b !== undefined && to < 0)) return whole;
      return b === undefined ? (days[from] as string) : `${days[from]}-${days[to]}`;
    },
  );
}

/**
 * Converts a whole expression. An expression without six or seven fields is returned unchanged, so that the cron parser refuses
 * it.
 */
export function quartzCron(expression: string): string {
  const fields = expression.trim().split(/\s+/);
  if (fields.length < 6 || fields.length > 7) return expression;
  fields[5] = (fields[5] as string).split(",").map(dayItem).join(",");
  return fields.join(" ");
}
