/** Chinese text for calendar periods and recurrence rules. The server provides the English text. */
import { parseRule, type ScheduleSpec } from "carillon/schedule";

type Spec<Type> = Extract<ScheduleSpec, { type: Type }>;

const weekdays = ["周一", "周二", "周三", "周四", "周五", "周六", "周日"];
const codes = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
const units = { day: "天", week: "周", month: "个月", year: "年" } as const;
const mostTimes = 6;

const every = (count: number, unit: keyof typeof units) =>
  count > 1 ? `每 ${count} ${units[unit]}` : unit === "month" ? "每月" : `每${units[unit]}`;

/** The n-th weekday of a period: "第 2 个周二", or counted from the end: "最后一个周五". */
const nthWeekday = (nth: number, weekday: string) =>
  nth === 0
    ? weekday
    : nth > 0
      ? `第 ${nth} 个${weekday}`
      : nth === -1
        ? `最后一个${weekday}`
        : `倒数第 ${-nth} 个${weekday}`;

/** A day of the month: "15 日", or counted from the end: "最后一天". */
const monthDay = (day: number) => (day > 0 ? `${day} 日` : day === -1 ? "最后一天" : `倒数第 ${-day} 天`);

export function intervalInChinese({ count, unit, on = [], at, zone, anchor }: Spec<"interval">): string {
  const days = on.map((day) => dayInChinese(unit, day)).join("、");
  const from = count > 1 ? `，从 ${anchor} 起算` : "";
  return `${[every(count, unit), days, at.join("、")].filter((part) => part !== "").join(" ")} · ${zone}${from}`;
}

function dayInChinese(unit: Spec<"interval">["unit"], day: number | string): string {
  if (typeof day === "number") return monthDay(day);
  if (day === "last") return monthDay(-1);
  if (unit === "year") return `${Number(day.slice(0, 2))} 月 ${Number(day.slice(3))} 日`;
  const weekday = weekdays[codes.indexOf(day.slice(0, 3))] ?? day;
  return nthWeekday(day.endsWith("L") ? -1 : Number(day[4] ?? 0), weekday);
}

const periods = { DAILY: "day", WEEKLY: "week", MONTHLY: "month", YEARLY: "year" } as const;

/** Formats a local time that is stored as if it were UTC. */
const localTime = (ms: number) => new Date(ms).toISOString().slice(0, 16).replace("T", " ");

/** A rule without a short sentence is shown as its source text. */
export function ruleInChinese(
  { rule: text, start, zone, rdate = [], exdate = [] }: Spec<"rrule">,
  time: (ms: number) => string,
): string {
  const said = shortRule(text, start);
  const { interval, count, until } = parseRule(text);
  return [
    `${said ?? text} · ${zone}`,
    ...(interval > 1 || count !== null || said === null ? [`从 ${start.replace("T", " ")} 起算`] : []),
    ...(said === null || count === null ? [] : [`共 ${count} 次`]),
    ...(said === null || until === null
      ? []
      : [`至 ${until.kind === "instant" ? time(until.ms) : localTime(until.ms)} 止`]),
    ...(rdate.length === 0 ? [] : [`另加 ${rdate.length} 个时间`]),
    ...(exdate.length === 0 ? [] : [`除去 ${exdate.length} 个时间`]),
  ].join("，");
}

function shortRule(text: string, start: string): string | null {
  const rule = parseRule(text);
  const { frequency, interval, positions, weekNumbers, yearDays, months, monthDays } = rule;
  const unit = frequency in periods ? periods[frequency as keyof typeof periods] : undefined;
  if (unit === undefined || positions || weekNumbers || yearDays || (monthDays && rule.weekdays)) return null;
  const from = new Date(`${start.slice(0, 10)}T${start.slice(11) || "00:00:00"}Z`);
  const times = (rule.hours ?? [from.getUTCHours()]).flatMap((hour) =>
    (rule.minutes ?? [from.getUTCMinutes()]).flatMap((minute) =>
      (rule.seconds ?? [from.getUTCSeconds()]).map((second) =>
        [hour, minute, ...(second === 0 ? [] : [second])].map((part) => String(part).padStart(2, "0")).join(":"),
      ),
    ),
  );
  if (times.length > mostTimes) return null;
  const named = rule.weekdays?.map(({ nth, weekday }) => nthWeekday(nth, weekdays[weekday] as string));
  // The start supplies the parts that the rule omits: weekday, day, month.
  const ownDays =
    unit === "day"
      ? []
      : unit === "week"
        ? [weekdays[(from.getUTCDay() + 6) % 7] as string]
        : [monthDay(from.getUTCDate())];
  const days = monthDays?.map(monthDay) ?? named ?? ownDays;
  const isDated = unit === "year" && !months && !monthDays && !named;
  const ownMonths = isDated ? [from.getUTCMonth() + 1] : [];
  const inMonths = (months ?? ownMonths).length === 0 ? "" : `${(months ?? ownMonths).join("、")} 月`;
  return [every(interval, unit), inMonths, days.join("、"), times.join("、")].filter((part) => part !== "").join(" ");
}
