/**
 * Imports schedules of Amazon EventBridge Scheduler from the output of `aws scheduler get-schedule`, for one schedule or several, or from a
 * CloudFormation template in JSON with resources of the type AWS::Scheduler::Schedule.
 */
import { isCarillonError } from "../../base/errors.ts";
import { instantAt } from "../../schedule/calendar.ts";
import { zoneOf } from "../../schedule/zone.ts";
import type { SourceTimes } from "../compare/source-times.ts";
import { fieldTable, tellFields } from "../fields.ts";
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
import { quartzCron } from "../quartz-cron.ts";

export const eventbridgeFields = fieldTable(`
Name | carried | the task's name |
GroupName | carried | before the name, unless it is default |
Description | carried | description |
ScheduleExpression | carried | schedule: cron, rate as every, at |
ScheduleExpressionTimezone | carried | the schedule's zone; without it UTC |
StartDate | carried | from, and the anchor of a rate |
EndDate | carried | until |
State | carried | DISABLED: imported without its schedule |
FlexibleTimeWindow | carried | jitter |
Target | carried | see below |
ActionAfterCompletion | lost | whether a schedule is removed after its end | Remove the task then.
KmsKeyArn | unused | how AWS encrypts the schedule |
Arn | unused | its name at AWS |
CreationDate | unused | |
LastModificationDate | unused | |
ClientToken | unused | of one request |
`);

export const targetFields = fieldTable(`
Arn | carried | in the remark above the task |
Input | carried | slotPayload |
RetryPolicy | carried | retry, where it gives a number of attempts below 185 |
RoleArn | lost | the role that called the target | A worker calls with its own rights.
DeadLetterConfig | lost | the queue of what failed for good | See carillon dead list.
EcsParameters | lost | the container that ran | Give the task a command, or a worker a handler.
EventBridgeParameters | lost | the event's source and type |
KinesisParameters | lost | the partition key |
SageMakerPipelineParameters | lost | the pipeline's parameters |
SqsParameters | lost | the queue's message group |
`);

/** The number of attempts that AWS makes within a day if the target has no retry policy. */
const usualAttempts = 185;
const unitsMs: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

export function importEventbridge(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  for (const file of files) {
    const content = readJson(file, findings);
    if (content === undefined) continue;
    const rows = schedulesOf(content);
    if (rows.length === 0)
      findings.problem(
        "",
        `${file.path} has no schedules`,
        "Write aws scheduler get-schedule --name NAME to it, one a line or as a list.",
      );
    for (const row of rows) addSchedule(row, options, findings);
  }
  return findings;
}

function schedulesOf(content: unknown): Row[] {
  if (Array.isArray(content)) return content.flatMap(schedulesOf);
  if (!isRow(content)) return [];
  if (isRow(content.Resources))
    return Object.entries(content.Resources).flatMap(([id, resource]) =>
      isRow(resource) && resource.Type === "AWS::Scheduler::Schedule" && isRow(resource.Properties)
        ? [{ Name: id, ...resource.Properties }]
        : [],
    );
  if (Array.isArray(content.Schedules)) return rowsOf(content.Schedules);
  return "Name" in content || "ScheduleExpression" in content ? [content] : [];
}

function addSchedule(row: Row, options: ImportOptions, findings: Findings): void {
  const [own, folder] = [textOf(row.Name), textOf(row.GroupName)];
  const source = folder === "" || folder === "default" ? own : `${folder}/${own}`;
  const text = textOf(row.ScheduleExpression);
  if (text === "") {
    findings.problem(
      source,
      "it has no ScheduleExpression",
      "list-schedules leaves it out: use get-schedule for each name.",
    );
    return;
  }
  const zone = textOf(row.ScheduleExpressionTimezone) || options.zone;
  const [fromMs, endMs] = [momentOf(row.StartDate), momentOf(row.EndDate)];
  for (const [name, ms] of [
    ["StartDate", fromMs],
    ["EndDate", endMs],
  ] as const)
    if (Number.isNaN(ms)) {
      findings.problem(source, `its ${name} ${JSON.stringify(row[name])} is no time`, "It is ISO 8601 or seconds.");
      return;
    }
  const made = scheduleOf(text, zone, fromMs, source, findings);
  if (made === undefined) return;
  tellFields(row, eventbridgeFields, source, findings);
  const target = isRow(row.Target) ? row.Target : {};
  tellFields(target, targetFields, source, findings, "Target");
  findings.add(
    source,
    source,
    {
      description: textOf(row.Description) || undefined,
      group: options.group,
      schedule: { ...made.schedule, ...jitterOf(row.FlexibleTimeWindow, made, source, findings) },
      slotPayload: payloadOf(target.Input),
      retry: retryOf(target.RetryPolicy),
    },
    {
      comment: textOf(target.Arn) === "" ? "" : `called ${textOf(target.Arn)}`,
      suspended: textOf(row.State) === "DISABLED",
      // EventBridge ignores the start and end dates of a one-time schedule, so they are left out.
      fromMs: made.times.dialect === "once" ? undefined : fromMs,
      untilMs: made.times.dialect === "once" || endMs === undefined ? undefined : endMs + 1,
      times: made.times,
    },
  );
}

interface Made {
  schedule: Row;
  times: SourceTimes;
  periodMs?: number;
}

/** @returns undefined if the schedule cannot be converted; a problem is then reported */
function scheduleOf(
  text: string,
  zone: string,
  anchorMs: number | undefined,
  source: string,
  findings: Findings,
): Made | undefined {
  const [, kind = "", inner = ""] = /^(cron|rate|at)\(\s*(.*?)\s*\)$/s.exec(text) ?? [];
  if (kind === "cron")
    return { schedule: { cron: quartzCron(`0 ${inner}`), zone }, times: { dialect: "eventbridge", text: inner, zone } };
  const [, count = "", unit = ""] = /^(\d+)\s+(minute|hour|day)s?$/.exec(inner) ?? [];
  if (kind === "rate" && count !== "") {
    const everyMs = Number(count) * (unitsMs[unit] as number);
    const anchor = anchorMs === undefined ? {} : { anchor: new Date(anchorMs).toISOString() };
    return {
      schedule: { every: everyMs, ...anchor },
      times: { dialect: "interval", everyMs, anchorMs },
      periodMs: everyMs,
    };
  }
  const localMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(inner) ? Date.parse(`${inner}Z`) : Number.NaN;
  if (kind === "at" && !Number.isNaN(localMs)) {
    try {
      const atMs = instantAt(zoneOf(zone), localMs);
      return { schedule: { at: new Date(atMs).toISOString() }, times: { dialect: "once", atMs } };
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      findings.problem(source, error.message, error.hint);
      return undefined;
    }
  }
  findings.problem(source, `its ScheduleExpression ${text} is not understood`, "It is cron(…), rate(…) or at(…).");
  return undefined;
}

function jitterOf(window: unknown, { times, periodMs }: Made, source: string, findings: Findings): Row {
  const minutes =
    isRow(window) && textOf(window.Mode) === "FLEXIBLE" ? (numberOf(window.MaximumWindowInMinutes) ?? 0) : 0;
  if (minutes === 0) return {};
  if (times.dialect === "once") {
    findings.lost(source, `its flexible window of ${minutes} minutes`, "A single time has no jitter.");
    return {};
  }
  return { jitter: Math.min(minutes * 60_000, periodMs ?? Number.POSITIVE_INFINITY) };
}

function retryOf(policy: unknown): unknown {
  const tries = isRow(policy) ? numberOf(policy.MaximumRetryAttempts) : undefined;
  return tries === undefined || tries >= usualAttempts ? undefined : { attempts: tries + 1 };
}

/** Parses the target's input if it is JSON; any other value becomes the payload unchanged. */
function payloadOf(input: unknown): unknown {
  if (typeof input !== "string") return input;
  try {
    return JSON.parse(input);
  } catch {
    // A target's input may be any text, so a text that is not JSON becomes the payload unchanged.
    return input;
  }
}

/**
 * Converts seconds since 1970, as the AWS CLI prints them, or ISO 8601 to epoch milliseconds.
 * @returns undefined if no time is given; NaN if the value is not a time
 */
function momentOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  const seconds = numberOf(value);
  return seconds === undefined ? Date.parse(textOf(value)) : Math.round(seconds * 1_000);
}
