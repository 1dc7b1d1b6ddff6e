/** Converts a task into form fields, and a form into the edit of the task. */
import { cronOfPhrase, validateSchedule, zoneNameOf } from "carillon/schedule";
import {
  edited,
  isCarillonError,
  parseDuration,
  stepsOf,
  type TaskDefinition,
  type TaskOptions,
  within,
} from "carillon/task";
import { type Given, isRefusal } from "../../api/call.ts";
import { ownZone } from "../../preferences.ts";
import type { Task } from "../answers.ts";
import type { Schedule } from "../schedule-words.ts";
import { type PlainValue, plainGiven, plainOptions, plainValues } from "./plain-options.ts";
import { type Rules, rulesChanges, rulesOf } from "./rules.ts";

type Options = Given<"editTask">["options"];

/** A part that the edit changes. */
interface Change {
  part: string;
  was: unknown;
  is: unknown;
}

export interface Form extends Rules {
  kind: Schedule["type"];
  /** A cron expression, or English words for one. */
  cron: string;
  zone: string;
  every: string;
  /** A duration such as "30s"; "" for none. */
  jitter: string;
  /** "slot": each slot has its own random delay; "task": all slots of the task have the same delay. */
  jitterBy: "slot" | "task";
  /** The DST policy for a skipped (`gap`) or repeated (`fold`) hour; null leaves it unchanged, or at the expression's default. */
  gap: string | null;
  fold: string | null;
  /** The values of the options in `plainOptions`, by option name. */
  plain: Record<string, PlainValue>;
  attempts: number;
  backoff: string;
  delay: string;
  maxDelay: string;
  overlap: string;
  /** The number of concurrent runs; used if `overlap` is "queue". */
  atOnce: number;
  /** The largest number of waiting runs; null for no limit. Used if `overlap` is "queue". */
  waiting: number | null;
  misfire: string;
}

export const ownParts = (definition: Record<string, unknown>) =>
  definition as unknown as TaskDefinition & { schedule: Schedule };

const seconds = (ms: number) => (ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`);
const short = (ms: number) =>
  ms !== 0 && ms % 86_400_000 === 0
    ? `${ms / 86_400_000}d`
    : ms !== 0 && ms % 3_600_000 === 0
      ? `${ms / 3_600_000}h`
      : ms !== 0 && ms % 60_000 === 0
        ? `${ms / 60_000}m`
        : seconds(ms);

export function formOf(task: Pick<Task, "definition">): Form {
  const { schedule, ...is } = ownParts(task.definition);
  return {
    ...rulesOf(ownParts(task.definition)),
    kind: schedule.type,
    cron: schedule.type === "cron" ? schedule.expression : "0 3 * * *",
    zone: zoneNameOf(schedule) ?? ownZone,
    every: schedule.type === "every" ? short(schedule.everyMs) : "5m",
    jitter: "jitterMs" in schedule && schedule.jitterMs ? short(schedule.jitterMs) : "",
    jitterBy: "jitterBy" in schedule && schedule.jitterBy ? schedule.jitterBy : "slot",
    gap: null,
    fold: null,
    plain: plainValues(ownParts(task.definition)),
    attempts: is.retry.attempts,
    backoff: is.retry.backoff,
    delay: short(is.retry.delayMs),
    maxDelay: short(is.retry.maxDelayMs),
    overlap: is.overlap.policy,
    atOnce: is.overlap.limit ?? 1,
    waiting: is.overlap.waiting ?? null,
    misfire: is.misfire.policy,
  };
}

/** Converts the form's fields into a schedule. @throws CarillonError if the schedule is invalid, with the server's message */
export function scheduleOf(form: Form, before: Schedule): Schedule {
  // A jitter of 0 may be explicit or absent; the task's way is kept, so that an untouched field is not a change.
  const none = "jitterMs" in before && before.jitterMs === 0 ? { jitterMs: 0 } : {};
  const jitter =
    form.jitter.trim() === ""
      ? none
      : {
          jitterMs: parseDuration(form.jitter.trim(), "jitter"),
          ...(form.jitterBy === "task" && { jitterBy: form.jitterBy }),
        };
  // The form has no fields for these bounds, so they are copied from the present schedule.
  const { fromMs, untilMs, times } = before.type === "at" || before.type === "manual" ? {} : before;
  const bounds = { fromMs, untilMs, times };
  switch (form.kind) {
    case "cron": {
      const isCron = /^[\s\d*/,?LW#A-Z-]+$/i.test(form.cron) && form.cron.trim().split(/\s+/).length >= 5;
      const said = isCron ? null : cronOfPhrase(form.cron);
      const kept =
        before.type === "cron" && before.expression === form.cron ? { gap: before.gap, overlap: before.overlap } : {};
      return validateSchedule({
        type: "cron",
        expression: said?.expression ?? form.cron,
        zone: said?.zone ?? form.zone,
        ...kept,
        ...(form.gap === null ? {} : { gap: form.gap as "skip" }),
        ...(form.fold === null ? {} : { overlap: form.fold as "first" }),
        ...jitter,
        ...bounds,
      }) as Schedule;
    }
    case "every":
      return validateSchedule({
        type: "every",
        everyMs: parseDuration(form.every),
        ...(before.type === "every" ? { mode: before.mode, anchorMs: before.anchorMs } : {}),
        ...jitter,
        ...bounds,
      }) as Schedule;
    default:
      return before.type === form.kind ? before : { type: "manual" };
  }
}

/** The options that differ from the task's current options. */
export function optionsOf(form: Form, task: Task): { options: Options; changes: Change[] } {
  const is = ownParts(task.definition);
  const first = formOf(task);
  const options: Record<string, unknown> = {};
  const changes: Change[] = [];
  const put = (part: string, differs: boolean, was: unknown, value: unknown) => {
    if (!differs) return;
    options[part] = value;
    changes.push({ part, was, is: value });
  };
  const schedule = within("schedule", () => scheduleOf(form, is.schedule));
  put("schedule", JSON.stringify(schedule) !== JSON.stringify(validateSchedule(is.schedule)), is.schedule, schedule);
  for (const option of plainOptions) {
    const [was, value] = [plainGiven(option, first.plain[option]), plainGiven(option, form.plain[option])];
    put(option, value !== was, was, value);
  }
  const retry = ({ attempts, backoff, delay, maxDelay }: Form) => ({
    attempts,
    backoff,
    delay: delay.trim(),
    maxDelay: maxDelay.trim(),
    jitter: is.retry.jitter,
  });
  put("retry", JSON.stringify(retry(form)) !== JSON.stringify(retry(first)), retry(first), retry(form));
  const overlap = ({ overlap: policy, atOnce, waiting }: Form) =>
    policy === "queue" && (atOnce !== 1 || waiting !== null)
      ? { ...(atOnce !== 1 && { allow: atOnce }), ...(waiting !== null && { queue: waiting }) }
      : policy;
  const overlaps = { was: overlap(first), is: overlap(form) };
  put("overlap", JSON.stringify(overlaps.is) !== JSON.stringify(overlaps.was), overlaps.was, overlaps.is);
  put("misfire", form.misfire !== first.misfire, is.misfire.policy, form.misfire);
  for (const { part, was, is: value } of rulesChanges(form, first)) put(part, true, was, value);
  return { options: options as Options, changes };
}

/** The task after the edit, checked like the server will check it; undefined if only the server can check it. @throws CarillonError */
export function made(task: Task, options: Options): TaskDefinition | undefined {
  try {
    return edited(ownParts(task.definition), options as TaskOptions);
  } catch (error) {
    if (isCarillonError(error)) throw error;
    // The code that counts the bytes of a long payload needs Node, so only the server can check such a payload.
    return undefined;
  }
}

/** The name of the option that an error is about; "" if the error is not about one option. */
export function placeOf(error: unknown): string {
  if (!isRefusal(error) && !isCarillonError(error)) return "";
  return error.code === "CALENDAR_UNKNOWN" ? "calendar" : (stepsOf(error.path)[0] ?? "");
}
