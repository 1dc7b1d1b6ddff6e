/** Imports the jobs of APScheduler 3 from JSON, as GET /scheduler/jobs of Flask-APScheduler returns it. */
import { bothDays } from "../both-days.ts";
import type { SourceTimes } from "../compare/source-times.ts";
import { fieldTable, saysNothing, tellFields, tellHandlers, tellZone } from "../fields.ts";
import {
  Findings,
  type ImportOptions,
  isRow,
  numberOf,
  type Row,
  readJson,
  rowsOf,
  type SourceFile,
  textOf,
} from "../findings.ts";

export const apschedulerFields = fieldTable(`
id | carried | the task's name |
name | carried | description, where it is not the id |
func | carried | in the remark above the task, whose handler takes its place |
args | carried | slotPayload.args |
kwargs | carried | slotPayload.kwargs |
trigger | carried | schedule: cron, interval as every, date as at |
year | carried | schedule |
month | carried | schedule |
day | carried | schedule |
week | carried | a problem: a cron has no weeks of the year |
day_of_week | carried | schedule; 0 is Monday there |
hour | carried | schedule |
minute | carried | schedule |
second | carried | schedule |
weeks | carried | schedule: every |
days | carried | schedule: every |
hours | carried | schedule: every |
minutes | carried | schedule: every |
seconds | carried | schedule: every |
run_date | carried | schedule: at |
start_date | carried | from, and the anchor of an interval |
end_date | carried | until |
timezone | carried | the schedule's zone |
jitter | carried | jitter |
misfire_grace_time | carried | misfire: skip after it; null: fire_once |
max_instances | carried | overlap: skip of 1; more are told |
next_run_time | carried | null: paused, imported without its schedule |
coalesce | lost | whether missed times are one run | See misfire.
executor | lost | the pool that ran it | Set group.
jobstore | unused | |
replace_existing | unused | |
`);

interface Made {
  schedule: Row;
  times: SourceTimes;
}

export function importApscheduler(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  let [handlers, unzoned] = [0, 0];
  for (const file of files) {
    const content = readJson(file, findings);
    if (content === undefined) continue;
    const rows = rowsOf(isRow(content) && !("trigger" in content) ? Object.values(content).flat() : [content].flat());
    if (rows.length === 0)
      findings.problem("", `${file.path} has no entries`, "Write GET /scheduler/jobs of Flask-APScheduler to it.");
    for (const row of rows) {
      const source = textOf(row.id);
      const made = scheduleOf(row, source, options.zone, findings);
      if (made === undefined || addEntry(row, source, made, options, findings) === undefined) continue;
      handlers++;
      if (textOf(row.timezone) === "" && made.times.dialect === "apscheduler") unzoned++;
    }
  }
  tellHandlers(handlers, "Python functions", findings);
  tellZone(unzoned, options.zone, "It is the scheduler's timezone", findings);
  return findings;
}

function addEntry(row: Row, source: string, { schedule, times }: Made, options: ImportOptions, findings: Findings) {
  tellFields(row, apschedulerFields, source, findings);
  const most = numberOf(row.max_instances) ?? 1;
  if (most > 1)
    findings.lost(
      source,
      `its ${most} runs at once`,
      "Here they are not limited: set overlap: { allow: N } to have it.",
    );
  const grace = row.misfire_grace_time === null ? undefined : (numberOf(row.misfire_grace_time) ?? 1);
  const [start, end] = [momentOf(row.start_date), momentOf(row.end_date)];
  const jitter = numberOf(row.jitter) ?? 0;
  const payload = {
    ...(saysNothing(row.args) ? {} : { args: row.args }),
    ...(saysNothing(row.kwargs) ? {} : { kwargs: row.kwargs }),
  };
  const own = textOf(row.name);
  return findings.add(
    source,
    source.replace(/\s+/g, "-"),
    {
      description: own === source ? undefined : own || undefined,
      group: options.group,
      schedule: { ...schedule, ...(jitter > 0 && times.dialect !== "once" ? { jitter: jitter * 1_000 } : {}) },
      slotPayload: saysNothing(payload) ? undefined : payload,
      overlap: most === 1 ? "skip" : undefined,
      misfire: grace === undefined ? { policy: "fire_once" } : { policy: "skip", after: Math.max(1, grace) * 1_000 },
    },
    {
      comment: `ran the Python function ${textOf(row.func)}`,
      suspended: row.next_run_time === null,
      fromMs: times.dialect === "once" ? undefined : start,
      // APScheduler may still fire exactly at the end date, while `untilMs` is exclusive, so 1 ms is added.
      untilMs: times.dialect === "once" || end === undefined ? undefined : end + 1,
      times,
    },
  );
}

const parts = ["weeks", "days", "hours", "minutes", "seconds"] as const;
const partsMs = [604_800_000, 86_400_000, 3_600_000, 60_000, 1_000];

/** @returns undefined if the trigger cannot be converted; a problem is then reported */
function scheduleOf(row: Row, source: string, usualZone: string, findings: Findings): Made | undefined {
  const trigger = textOf(row.trigger);
  if (trigger === "date") {
    const atMs = momentOf(row.run_date);
    if (atMs !== undefined) return { schedule: { at: new Date(atMs).toISOString() }, times: { dialect: "once", atMs } };
  }
  if (trigger === "interval") {
    const everyMs = parts.reduce((sum, part, at) => sum + (numberOf(row[part]) ?? 0) * (partsMs[at] as number), 0);
    const anchorMs = momentOf(row.start_date);
    const anchor = anchorMs === undefined ? {} : { anchor: new Date(anchorMs).toISOString() };
    return { schedule: { every: everyMs, ...anchor }, times: { dialect: "interval", everyMs, anchorMs } };
  }
  const zone = textOf(row.timezone) || usualZone;
  const fields = trigger === "cron" ? fieldsOf(row) : undefined;
  const cron = fields && cronOf(fields);
  if (fields && cron) {
    const text = ["second", "minute", "hour", "day", "month", "day_of_week", "year"]
      .map((name) => fields[name])
      .join(" ");
    return { schedule: { cron, zone }, times: { dialect: "apscheduler", text, zone } };
  }
  findings.problem(
    source,
    `its trigger ${trigger} ${JSON.stringify(fields ?? row.run_date ?? null)} cannot be carried over`,
    "Write its schedule by hand.",
  );
  return undefined;
}

/**
 * The units from the largest to the smallest. As in APScheduler, a unit that is smaller than all given units gets its default from here.
 */
const units = { year: "*", month: "1", day: "1", week: "*", day_of_week: "*", hour: "0", minute: "0", second: "0" };

function fieldsOf(row: Row): Record<string, string> {
  const names = Object.keys(units) as (keyof typeof units)[];
  const last = names.findLastIndex((name) => row[name] !== undefined && row[name] !== null);
  return Object.fromEntries(names.map((name, at) => [name, textOf(row[name]) || (at < last ? "*" : units[name])]));
}

const dayNames = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
const ordinals = ["1st", "2nd", "3rd", "4th", "5th"];

/** @returns undefined if no cron can express these days */
function cronOf(fields: Record<string, string>): string | undefined {
  const { second, minute, hour, month, year, day = "*", week } = fields;
  const weekday = (fields.day_of_week ?? "*").split(",").map(weekdayItem).join(",");
  const [, which, name = ""] = /^(\d\w\w|last) (\w{3})$/i.exec(day) ?? [];
  if (week !== "*") return undefined;
  let days: [string, string] | undefined = bothDays(day.toLowerCase() === "last" ? "L" : day, weekday);
  if (which !== undefined) {
    const nth = which === "last" ? "L" : `#${ordinals.indexOf(which.toLowerCase()) + 1}`;
    days = weekday === "*" ? ["*", `${name.toUpperCase()}${nth}`] : undefined;
  }
  if (days === undefined) return undefined;
  const text = [second, minute, hour, days[0], month, days[1]].join(" ");
  return year === "*" ? text : `${text} ${year}`;
}

/**
 * Converts an item of the weekday field to names. APScheduler numbers weekdays from 0 (Monday); steps count from the item's first
 * day.
 */
function weekdayItem(item: string): string {
  const [, from = "", to, step] = /^(\*|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(item.trim()) ?? [];
  if (from === "*" && step === undefined) return "*";
  const indexOf = (text: string) => (/^[0-6]$/.test(text) ? Number(text) : dayNames.indexOf(text.toUpperCase()));
  const [first, last] = from === "*" ? [0, 6] : [indexOf(from), indexOf(to ?? from)];
  // A text that is not a weekday or a range of weekdays is returned unchanged, so that the cron parser refuses it.
  if (first < 0 || last < first) return item;
  const found = dayNames.filter((_, at) => at >= first && at <= last && (at - first) % Number(step ?? 1) === 0);
  return found.join(",");
}

function momentOf(value: unknown): number | undefined {
  const ms = Date.parse(textOf(value));
  return Number.isNaN(ms) ? undefined : ms;
}
