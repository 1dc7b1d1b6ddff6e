/**
 * Converts OnCalendar expressions of systemd to cron expressions. In systemd, a day must match both the date and the weekday; a
 * cron expression can require that only for some dates.
 */
import { bothDays } from "../both-days.ts";

export interface CalendarCron {
  cron: string;
  /** The zone's name; null if the expression names no zone. */
  zone: string | null;
}

const named: Record<string, string> = {
  minutely: "* * * * *",
  hourly: "0 * * * *",
  daily: "0 0 * * *",
  weekly: "0 0 * * MON",
  monthly: "0 0 1 * *",
  yearly: "0 0 1 1 *",
  annually: "0 0 1 1 *",
  quarterly: "0 0 1 1,4,7,10 *",
  semiannually: "0 0 1 1,7 *",
};

/** @returns undefined if the expression cannot be parsed, or if no cron can express its days */
export function cronOfCalendar(text: string): CalendarCron | undefined {
  const [, before = text.trim(), zone = null] = /^(.*\S)\s+(UTC|[A-Z][A-Za-z_]+\/[\w+\-/]+)$/.exec(text.trim()) ?? [];
  const known = named[before.toLowerCase()];
  if (known !== undefined) return { cron: known, zone };
  const words = before.split(/\s+/);
  const days = /^[A-Za-z]/.test(words[0] ?? "") ? (words.shift() as string) : "";
  const time = words.find((word) => word.includes(":"));
  const date = words.find((word) => word !== time);
  if (words.length !== [time, date].filter((word) => word !== undefined).length) return undefined;
  const [hour = "", minute = "", second = "0", ...rest] = (time ?? "0:0").split(":");
  const cron = rest.length > 0 ? undefined : fieldsOf(days, date ?? "*-*-*", [second, minute, hour]);
  return cron === undefined ? undefined : { cron, zone };
}

function fieldsOf(days: string, date: string, times: readonly string[]): string | undefined {
  const [, years = "*", months = "", sign = "", daysOfMonth = ""] =
    /^(?:([^-~]+)-)?([^-~]+)([-~])([^-~]+)$/.exec(date) ?? [];
  const weekday = weekdaysOf(days);
  if (months === "" || weekday === undefined || [years, months, daysOfMonth, ...times].some((one) => !isField(one)))
    return undefined;
  const both = sign === "~" ? fromEnd(daysOfMonth, weekday) : bothDays(fieldOf(daysOfMonth), weekday);
  if (both === undefined) return undefined;
  const [second = "", minute = "", hour = ""] = times.map(fieldOf);
  const rest = [minute, hour, both[0], fieldOf(months), both[1]].join(" ");
  const year = fieldOf(years);
  return year !== "*" ? `${second} ${rest} ${year}` : second === "0" ? rest : `${second} ${rest}`;
}

const isField = (text: string): boolean =>
  text.split(",").every((item) => /^(?:\*|\d+(?:\.\.\d+)?(?:\/\d+)?)$/.test(item));

const fieldOf = (text: string): string => text.replaceAll("..", "-").replace(/\b0+(?=\d)/g, "");

function weekdaysOf(text: string): string | undefined {
  if (text === "") return "*";
  const items = text.split(",").filter((item) => item !== "");
  const days = items.map((item) => {
    const names = item.split(/\.\.|-/).map((name) => name.slice(0, 3).toUpperCase());
    return names.length <= 2 && names.every((name) => weekdayNames.includes(name)) ? names.join("-") : undefined;
  });
  return days.includes(undefined) ? undefined : days.join(",");
}
const weekdayNames = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/**
 * Converts a day counted from the end of the month: ~01 is the last day. With one weekday, only ~07/1 is converted: the last day
 * of that weekday in the month.
 */
function fromEnd(text: string, weekday: string): [string, string] | undefined {
  if (weekday !== "*") return /^0*7\/1$/.test(text) && /^[A-Z]{3}$/.test(weekday) ? ["*", `${weekday}L`] : undefined;
  const days = text.split(",").map((item) => (/^\d+$/.test(item) ? Number(item) - 1 : Number.NaN));
  return days.some(Number.isNaN) ? undefined : [days.map((back) => (back === 0 ? "L" : `L-${back}`)).join(","), "*"];
}
