/**
 * The entry point carillon/schedule: the schedules, zones and calendars that the planner uses. Its functions are pure and also
 * work in browsers.
 */
export { type Calendar, type CalendarRule, instantAt, localDayOf, runDays } from "./calendar.ts";
export type { CronFields } from "./cron.ts";
export { parseCron } from "./cron-parse.ts";
export { cronOfPhrase } from "./phrase/phrase.ts";
export { parseRule } from "./rrule/rule.ts";
export {
  type Bounds,
  compileSchedule,
  cron,
  every,
  manual,
  type ScheduleSpec,
  validateSchedule,
  zoneNameOf,
} from "./schedule.ts";
export { plannedSchedule } from "./slot-rules.ts";
export { endOfTime, zoneOf } from "./zone.ts";
