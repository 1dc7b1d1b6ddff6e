/**
 * A schedule in the viewer's language. The server provides the English text; the Chinese text is generated here from the same
 * parsed fields.
 */
import { type CronFields, parseCron, type ScheduleSpec, zoneNameOf } from "carillon/schedule";
import { spanText, type Words } from "../messages/texts.ts";
import { intervalInChinese, ruleInChinese } from "./recurring-words.ts";

export type Schedule = ScheduleSpec;

/** Formats a time of the schedule in the schedule's own zone; without one, in the viewer's zone, followed by the zone's name. */
type Time = (ms: number) => string;

/** @param text the server's English description of the schedule */
export function scheduleWords(schedule: Schedule, text: string, { language, zone, told, when }: Words): string {
  const own = zoneNameOf(schedule) ?? undefined;
  if (language === "en") {
    const said = told(text, own);
    return said === text || own !== undefined ? said : `${said}, ${zone}`;
  }
  const time: Time = (ms) => (own === undefined ? `${when(ms)}（${zone}）` : when(ms, own));
  return [inChinese(schedule, time), ...boundsInChinese(schedule, time)].join("，");
}

function boundsInChinese(schedule: Schedule, time: Time): string[] {
  if (schedule.type === "at" || schedule.type === "manual") return [];
  const { fromMs, untilMs, times } = schedule;
  return [
    ...(fromMs === undefined ? [] : [`自 ${time(fromMs)} 起`]),
    ...(untilMs === undefined ? [] : [`至 ${time(untilMs)} 止`]),
    ...(times === undefined ? [] : [`共 ${times} 次`]),
  ];
}

function inChinese(schedule: Schedule, time: Time): string {
  switch (schedule.type) {
    case "every":
      return schedule.mode === "rate"
        ? `每 ${spanText(schedule.everyMs, "zh")}一次`
        : `上次运行结束后 ${spanText(schedule.everyMs, "zh")}`;
    case "interval":
      return intervalInChinese(schedule);
    case "rrule":
      return ruleInChinese(schedule, time);
    case "manual":
      return "没有自己的时间";
    case "at":
      return `一次：${time(schedule.atMs)}`;
    case "cron": {
      const said = cronInChinese(parseCron(schedule.expression).fields);
      return said === null ? `${schedule.expression} · ${schedule.zone}` : `${said} · ${schedule.zone}`;
    }
  }
}

const all = (count: number) => 2 ** count - 1;
const bits = (mask: number, count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => at).flatMap((at) => (mask & (2 ** at) ? [at + from] : []));
const sixty = (low: number, high: number) => [...bits(low, 30), ...bits(high, 30, 30)];
const two = (value: number) => String(value).padStart(2, "0");
const weekdayNames = ["周日", "周一", "周二", "周三", "周四", "周五", "周六"];
const mostTimes = 6;

/** The step n if n divides `end` and the list is 0, n, 2n … below `end`, with at least two values; otherwise null. */
function stepOf(values: number[], end: number): number | null {
  const [first, second] = values;
  if (first !== 0 || second === undefined || end % second !== 0 || values.length !== end / second) return null;
  return values.every((value, at) => value === at * second) ? second : null;
}

/** A cron in Chinese; null if it has no short sentence. */
export function cronInChinese(f: CronFields): string | null {
  if (f.nearest || f.lastNearest || f.lastWeekdays || f.nth || f.years) return null;
  const days = dayWords(f);
  const time = timeWords(f);
  if (days === null || time === null) return null;
  // "Every day every 15 minutes" is redundant: each hour's minutes recur on each day anyway.
  const isSaid = days !== "每天" || !time.startsWith("每");
  return isSaid ? `${days} ${time}` : time;
}

function dayWords(f: CronFields): string | null {
  const anyWeekday = f.weekdays === all(7);
  const anyDay = (f.days | 0) === (all(31) | 0);
  const months = f.months === all(12) ? "" : `${bits(f.months, 12, 1).join("、")} 月`;
  const weekdays =
    f.weekdays === 62
      ? "周一至周五"
      : `每${bits(f.weekdays, 7)
          .map((day) => weekdayNames[day])
          .join("、")}`;
  const last = f.lastDays === 0 ? [] : f.lastDays === 1 ? ["最后一天"] : null;
  if (last === null || (!anyWeekday && (!anyDay || last.length > 0))) return null;
  if (!anyWeekday) return `${months}${weekdays}`;
  if (anyDay && last.length === 0) return months === "" ? "每天" : `${months}每天`;
  const named = [...(anyDay ? [] : bits(f.days, 31, 1).map((day) => `${day} 日`)), ...last];
  return `${months === "" ? "每月 " : months} ${named.join("、")}`.replace("  ", " ");
}

function timeWords(f: CronFields): string | null {
  const seconds = sixty(f.secondsLow, f.secondsHigh);
  const minutes = sixty(f.minutesLow, f.minutesHigh);
  const hours = bits(f.hours, 24);
  const eachHour = hours.length === 24;
  const eachMinute = minutes.length === 60;
  if (seconds.length > 1) {
    if (!eachHour || !eachMinute) return null;
    const step = seconds.length === 60 ? 1 : stepOf(seconds, 60);
    return step === null ? null : step === 1 ? "每秒" : `每 ${step} 秒`;
  }
  const second = seconds[0] ?? 0;
  const tail = second === 0 ? "" : `的第 ${second} 秒`;
  if (eachHour && eachMinute) return `每分钟${tail}`;
  const step = stepOf(minutes, 60);
  if (eachHour && step !== null) return `每 ${step} 分钟${tail}`;
  if (eachHour) return `每小时的第 ${minutes.join("、")} 分${second === 0 ? "" : ` ${second} 秒`}`;
  const times = hours.flatMap((hour) =>
    minutes.map((minute) => `${two(hour)}:${two(minute)}${second === 0 ? "" : `:${two(second)}`}`),
  );
  if (times.length <= mostTimes) return times.join("、");
  const span = `${hours[0]} 至 ${hours.at(-1)} 时`;
  const isRun = hours.every((hour, at) => hour === (hours[0] ?? 0) + at);
  if (!isRun) return null;
  if (eachMinute) return `${span}的每分钟`;
  return step === null ? `${span}的第 ${minutes.join("、")} 分` : `${span}每 ${step} 分钟`;
}
