/**
 * Imports Celery beat schedules from a fixture of django-celery-beat (`manage.py dumpdata django_celery_beat`), or from the dictionary
 * beat_schedule as JSON (`json.dumps(app.conf.beat_schedule, default=str)`).
 */
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

export const periodicTaskFields = fieldTable(`
name | carried | the task's name |
task | carried | in the remark above the task, whose handler takes its place |
crontab | carried | schedule, with the crontab's timezone |
interval | carried | schedule: every |
clocked | carried | schedule: at |
solar | carried | a problem: there is no such schedule |
schedule | carried | schedule, in a dictionary |
args | carried | slotPayload.args |
kwargs | carried | slotPayload.kwargs |
queue | carried | group |
options | carried | queue as group; the others are told |
enabled | carried | false: imported without its schedule |
start_time | carried | from |
expires | carried | until |
one_off | carried | times: 1 where it has a start_time, else told |
description | carried | description |
exchange | lost | how the broker routes its messages |
routing_key | lost | how the broker routes its messages |
headers | lost | the headers of its messages | Put them into slotPayload.
priority | lost | the broker's order | Set priority by hand.
expire_seconds | lost | a run that is this late is dropped | Set misfire: { policy: skip, after: N }.
relative | lost | whether an interval begins at whole units |
last_run_at | unused | |
total_run_count | unused | |
date_changed | unused | |
`);

const unitsMs: Record<string, number> = {
  days: 86_400_000,
  hours: 3_600_000,
  minutes: 60_000,
  seconds: 1_000,
  microseconds: 0.001,
};

interface Place {
  options: ImportOptions;
  findings: Findings;
  /** The rows of a fixture; the key is the model's name, a space, and the primary key. */
  models: ReadonlyMap<string, Row>;
  unzoned: Set<string>;
  handlers: Set<string>;
}

export function importCelery(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  const models = new Map<string, Row>();
  const rows: Row[] = [];
  for (const file of files) {
    const content = readJson(file, findings);
    if (content === undefined) continue;
    const before = rows.length;
    if (Array.isArray(content))
      for (const row of rowsOf(content)) {
        const [model, fields] = [textOf(row.model).toLowerCase(), isRow(row.fields) ? row.fields : {}];
        models.set(`${model} ${textOf(row.pk)}`, fields);
        if (model === "django_celery_beat.periodictask") rows.push(fields);
      }
    else if (isRow(content))
      for (const [name, row] of Object.entries(content)) if (isRow(row)) rows.push({ name, ...row });
    if (rows.length === before)
      findings.problem(
        "",
        `${file.path} has no periodic tasks`,
        "Write manage.py dumpdata django_celery_beat, or json.dumps(app.conf.beat_schedule, default=str).",
      );
  }
  const place: Place = { options, findings, models, unzoned: new Set(), handlers: new Set() };
  for (const row of rows) addPeriodic(row, place);
  tellHandlers(place.handlers.size, "Celery tasks", findings);
  tellZone(place.unzoned.size, options.zone, "It is timezone of the Celery application", findings);
  return findings;
}

interface Made {
  schedule: Row;
  times: SourceTimes;
  isZoned: boolean;
}

function addPeriodic(row: Row, place: Place): void {
  const { options, findings } = place;
  const source = textOf(row.name);
  const made = scheduleOf(row, source, place);
  if (made === undefined) return;
  tellFields(row, periodicTaskFields, source, findings);
  const said = isRow(row.options) ? row.options : {};
  for (const [name, value] of Object.entries(said))
    if (name !== "queue" && !saysNothing(value)) findings.lost(source, `its option ${name}: ${JSON.stringify(value)}`);
  const [args, kwargs] = [jsonOf(row.args), jsonOf(row.kwargs)];
  const payload = {
    ...(saysNothing(args) ? {} : { args }),
    ...(saysNothing(kwargs) ? {} : { kwargs }),
  };
  const [fromMs, endMs] = [Date.parse(textOf(row.start_time)), Date.parse(textOf(row.expires))];
  const isOnce = row.one_off === true && made.times.dialect !== "once";
  if (isOnce)
    findings.lost(source, "it is one_off: it runs once and is disabled then", "Remove the task after its run.");
  const added = findings.add(
    source,
    source.replace(/\s+/g, "-"),
    {
      description: textOf(row.description) || undefined,
      group: options.group ?? (textOf(row.queue) || textOf(said.queue) || undefined),
      schedule: made.schedule,
      slotPayload: saysNothing(payload) ? undefined : payload,
      // After an outage, beat sends a task once, however many of its slots were due during the outage.
      misfire: { policy: "fire_once" },
    },
    {
      comment: `ran the Celery task ${textOf(row.task)}`,
      suspended: row.enabled === false,
      fromMs: Number.isNaN(fromMs) || made.times.dialect === "once" ? undefined : fromMs,
      untilMs: Number.isNaN(endMs) || made.times.dialect === "once" ? undefined : endMs,
      times: made.times,
    },
  );
  if (added === undefined) return;
  place.handlers.add(added);
  if (!made.isZoned) place.unzoned.add(added);
}

/** @returns undefined if the schedule cannot be converted; a problem is then reported */
function scheduleOf(row: Row, source: string, place: Place): Made | undefined {
  const { findings, models, options } = place;
  const related = (kind: string) => models.get(`django_celery_beat.${kind}schedule ${textOf(row[kind])}`);
  for (const kind of ["crontab", "interval", "clocked"])
    if (textOf(row[kind]) !== "" && related(kind) === undefined) {
      findings.problem(
        source,
        `its ${kind} ${textOf(row[kind])} is not in these files`,
        "Dump the whole application django_celery_beat.",
      );
      return undefined;
    }
  const [crontab, interval, clocked] = [related("crontab"), related("interval"), related("clocked")];
  if (crontab) return cronOf(crontab, textOf(crontab.timezone), source, place);
  if (interval) return everyOf((numberOf(interval.every) ?? 0) * (unitsMs[textOf(interval.period)] ?? Number.NaN));
  const clockedMs = Date.parse(textOf(clocked?.clocked_time));
  if (!Number.isNaN(clockedMs)) return onceAt(clockedMs);
  const said = row.schedule;
  if (isRow(said)) return cronOf(said, textOf(said.timezone), source, place);
  const seconds = numberOf(said);
  if (seconds !== undefined) return everyOf(seconds * 1_000);
  const [, fields, legend] = /^<crontab: (\S+ \S+ \S+ \S+ \S+) \(([a-zA-Z/]+)\)>$/.exec(textOf(said)) ?? [];
  if (fields !== undefined) {
    const letters = (legend as string).split("/");
    const names: Record<string, string> = {
      m: "minute",
      h: "hour",
      d: "day_of_week",
      dM: "day_of_month",
      MY: "month_of_year",
    };
    const values = fields.split(" ");
    return cronOf(
      Object.fromEntries(letters.map((letter, at) => [names[letter] ?? letter, values[at]])),
      "",
      source,
      place,
    );
  }
  const [, freq] = /^<freq: ([\d.]+) seconds?>$/.exec(textOf(said)) ?? [];
  if (freq !== undefined) return everyOf(Number(freq) * 1_000);
  const [, days = "0", hour, minute, second] = /^(?:(\d+) days?, )?(\d+):(\d\d):(\d\d)$/.exec(textOf(said)) ?? [];
  if (hour !== undefined)
    return everyOf((((Number(days) * 24 + Number(hour)) * 60 + Number(minute)) * 60 + Number(second)) * 1_000);
  const kind = textOf(row.solar) === "" ? JSON.stringify(said ?? null) : "solar";
  findings.problem(
    source,
    `its schedule ${kind} cannot be carried over`,
    `Write its schedule by hand; times are in ${options.zone}.`,
  );
  return undefined;
}

const everyOf = (everyMs: number): Made => ({
  schedule: { every: everyMs },
  times: { dialect: "interval", everyMs },
  isZoned: true,
});
const onceAt = (atMs: number): Made => ({
  schedule: { at: new Date(atMs).toISOString() },
  times: { dialect: "once", atMs },
  isZoned: true,
});

/** Converts a crontab schedule to a cron. Celery fires only on days that match both the day of the month and the weekday. */
function cronOf(row: Row, named: string, source: string, { options, findings }: Place): Made | undefined {
  const field = (name: string) => textOf(row[name]).replace(/\s+/g, "") || "*";
  const [minute, hour, day, month, weekday] = ["minute", "hour", "day_of_month", "month_of_year", "day_of_week"].map(
    field,
  ) as [string, string, string, string, string];
  const both = bothDays(day, weekday);
  const text = [minute, hour, day, month, weekday].join(" ");
  if (both === undefined) {
    findings.problem(
      source,
      `its crontab ${text} means days that match both day fields`,
      "No cron has these days: write two tasks, or check the day in the handler.",
    );
    return undefined;
  }
  const zone = named || options.zone;
  return {
    schedule: { cron: [minute, hour, both[0], month, both[1]].join(" "), zone },
    times: { dialect: "celery", text, zone },
    isZoned: named !== "",
  };
}

/** Parses a column of a fixture if it is a text that contains JSON. */
function jsonOf(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    // Django stores the text as the user typed it, so a text that is not JSON becomes the payload unchanged.
    return value;
  }
}
