import { type AfterOption, type AfterSpec, afterSpec } from "./after.ts";
import { type Duration, parseDuration } from "./duration.ts";
import { CarillonError } from "./errors.ts";
import { type HttpOptions, type HttpSpec, httpSpec } from "./http-task.ts";
import { type Json, jsonText, shownValue, sortedJson } from "./json.ts";
import { limits } from "./limits.ts";
import { type PayloadSchema, payloadSchemaOf } from "./payload-schema.ts";
import type { RetryPolicy } from "./retry.ts";
import { manual, type ScheduleSpec, validateSchedule } from "./schedule.ts";
import { type SlotRuleOptions, type SlotRules, slotRules } from "./slot-rules.ts";
import {
  checkTogether,
  type LimitOptions,
  type PolicyParts,
  policyOptions,
  policyParts,
  type RouteOptions,
} from "./task-policies.ts";

/** A program and its arguments, run by a worker whose own configuration allows it. */
export interface CommandSpec {
  argv: string[];
  env?: Record<string, string>;
  /** "~": the home of the account that it runs as, "/" where that does not exist. Default "/". */
  cwd?: string;
  stdin?: string;
  /** The account that the command belongs to, as a crontab names it. */
  user?: string;
  /** Exit codes that are a success; default [0]. */
  okExitCodes?: number[];
  /** Those that the task's retry policy tries again; default: all others. The rest fail at once. */
  retryExitCodes?: number[];
}

/** `allow` without a limit lets runs pile up; every other policy counts the task's unfinished started runs. */
export interface OverlapPolicy {
  policy: "allow" | "queue" | "skip" | "replace";
  /** How many runs at once; null only with `allow`: any number. */
  limit: number | null;
}

/** What becomes of slots that could not be accepted, or not be started, within `afterMs` of their time. */
export interface MisfirePolicy {
  policy: "fire_once" | "skip" | "all";
  afterMs: number;
  /** `all` only: the newest this many are run, older ones are recorded as missed. */
  cap: number;
  /** `all` only: how many of them become due each second; null for all at once. */
  perSecond: number | null;
}

/** A task as the store keeps it: plain JSON, complete, versioned. */
export interface TaskDefinition extends SlotRules, PolicyParts {
  name: string;
  description: string;
  group: string;
  schedule: ScheduleSpec;
  /** What a run of a slot gets as payload. */
  slotPayload: Json;
  /** JSON Schema of its payloads: for forms and for a check beforehand. Absent: nothing is said of them. */
  payloadSchema?: PayloadSchema;
  /** 0 (last) to 9 (first). */
  priority: number;
  timeoutMs: number | null;
  retry: RetryPolicy;
  overlap: OverlapPolicy;
  misfire: MisfirePolicy;
  onWorkerLost: "retry" | "fail" | "ask";
  /** How long a claim outlives its worker's session, in case the worker comes back. */
  graceMs: number;
  command: CommandSpec | null;
  /** Absent: it calls no URL. Definitions from before there were HTTP tasks have the same text so. */
  http?: HttpSpec;
  /** Absent: all. Of runs that succeeded no row is kept: see docs/history.md. */
  history?: "failures";
  /** The tasks whose ends make its runs; such a task has no schedule of its own. */
  after?: AfterSpec;
  /** Of the parts that were edited by hand: what the code, or whatever else defines the task, says. See task-edits.ts. */
  asDefined?: Partial<Omit<TaskDefinition, "name" | "asDefined">>;
}

export interface TaskOptions extends SlotRuleOptions, RouteOptions, LimitOptions {
  description?: string;
  /** The workers that can run it; default "default". */
  group?: string;
  /** Default manual. */
  schedule?: ScheduleSpec;
  slotPayload?: unknown;
  /** JSON Schema of its payloads; default: what the schema in code says of itself. null: none. */
  payloadSchema?: object | null;
  /** 0 to 9, higher first; default 5. */
  priority?: number;
  /** Default none. */
  timeout?: Duration | null;
  /** Tries in all, or the whole policy; default 1 try. */
  retry?:
    | number
    | { attempts: number; backoff?: "fixed" | "exponential"; delay?: Duration; maxDelay?: Duration; jitter?: number };
  /** Default "allow": runs may overlap. */
  overlap?: "allow" | "queue" | "skip" | "replace" | { allow: number };
  misfire?:
    | "fire_once"
    | "skip"
    | "all"
    | { policy: "fire_once" | "skip" | "all"; after?: Duration; cap?: number; perSecond?: number };
  /** An ambiguous crash: run again (at least once, the default), give up and tell (at most once), or let an operator decide. */
  onWorkerLost?: "retry" | "fail" | "ask";
  grace?: Duration;
  /** Which ended runs are kept; default "all". "failures": those that succeeded are only counted. */
  history?: "all" | "failures";
  command?: CommandSpec;
  /** A URL that is called instead of a handler, by a worker whose own configuration allows it. */
  http?: HttpOptions;
  /** It runs after another task's run, or once several have run for the same slot, when those ended so; default "success". null: after none. */
  after?: AfterOption | null;
}

const optionNames: Record<keyof TaskOptions, true> = {
  description: true,
  group: true,
  schedule: true,
  slotPayload: true,
  payloadSchema: true,
  priority: true,
  timeout: true,
  retry: true,
  overlap: true,
  misfire: true,
  onWorkerLost: true,
  grace: true,
  history: true,
  command: true,
  http: true,
  calendar: true,
  blackout: true,
  ...policyOptions,
  after: true,
};

const defaultPriority = 5;
const defaultGraceMs = 1_000;
const namePattern = /^[\p{L}\p{N}][\p{L}\p{N}._:/@-]*$/u;

/** @throws TASK_INVALID for a name or option of the wrong shape, and what `schedule.ts` and `duration.ts` throw */
export function defineTask(name: string, options: TaskOptions = {}): TaskDefinition {
  checkName("a task's name", name, limits.taskNameLength);
  if (typeof options !== "object" || options === null)
    throw invalid(name, `its options cannot be ${shownValue(options)}`, "Give an object, or leave them out.");
  for (const key of Object.keys(options)) {
    // "constructor" is no option, though every object has it.
    if (!Object.hasOwn(optionNames, key)) {
      throw invalid(
        name,
        `there is no option ${JSON.stringify(key)}`,
        `The options are ${Object.keys(optionNames).join(", ")}.`,
      );
    }
  }
  const schedule = validateSchedule(options.schedule ?? manual);
  if (options.after != null && schedule.type !== "manual")
    throw invalid(
      name,
      "it has a schedule and comes after another task",
      "Leave out one of the two, or make it two tasks.",
    );
  const group = options.group ?? "default";
  checkName(`task ${name}: group`, group, limits.groupNameLength);
  const slotPayload = jsonText(options.slotPayload, `task ${name}: slotPayload`);
  const definition: TaskDefinition = {
    name,
    description: text(name, "description", options.description ?? ""),
    group,
    schedule,
    slotPayload: slotPayload === null ? null : (JSON.parse(slotPayload) as Json),
    priority: integer(name, "priority", options.priority ?? defaultPriority, 0, 9),
    timeoutMs: options.timeout == null ? null : parseDuration(options.timeout, `task ${name}: timeout`),
    retry: retryPolicy(name, options.retry),
    overlap: overlapPolicy(name, options.overlap ?? "allow"),
    misfire: misfirePolicy(name, options.misfire ?? "fire_once"),
    onWorkerLost: oneOf(name, "onWorkerLost", options.onWorkerLost ?? "retry", ["retry", "fail", "ask"]),
    graceMs: parseDuration(options.grace ?? defaultGraceMs, `task ${name}: grace`, 0),
    command: options.command === undefined ? null : commandSpec(name, options.command),
    ...(oneOf(name, "history", options.history ?? "all", ["all", "failures"]) === "all" ? {} : { history: "failures" }),
    ...(options.http === undefined ? {} : { http: httpSpec(name, options.http) }),
    ...(options.payloadSchema == null ? {} : { payloadSchema: payloadSchemaOf(name, options.payloadSchema) }),
    ...slotRules(name, options, schedule),
    ...policyParts(name, options),
    ...(options.after == null ? {} : { after: afterSpec(name, options.after) }),
  };
  checkTogether(name, definition, definition.overlap, schedule);
  return definition;
}

/** Equal definitions give equal text, whatever order their keys came in. */
export const definitionText = (definition: TaskDefinition): string => sortedJson(definition);

export function checkName(what: string, name: unknown, longest: number): asserts name is string {
  if (typeof name !== "string" || name.length > longest || !namePattern.test(name)) {
    throw new CarillonError("TASK_INVALID", `${what} cannot be ${shownValue(name)}`, {
      hint: `Use 1 to ${longest} letters, digits and . _ : / @ -, the first a letter or digit.`,
    });
  }
}

function retryPolicy(task: string, given: TaskOptions["retry"]): RetryPolicy {
  const options = typeof given === "number" ? { attempts: given } : (given ?? { attempts: 1 });
  const where = `task ${task}: retry`;
  onlyHas(task, "retry", options, ["attempts", "backoff", "delay", "maxDelay", "jitter"]);
  const pause = (option: "delay" | "maxDelay", value: Duration): number => {
    const ms = parseDuration(value, `${where}.${option}`, 0);
    if (ms <= limits.retryDelayMs) return ms;
    throw invalid(task, `retry.${option} cannot be ${shownValue(value)}`, "Give at most 366 days.");
  };
  const delayMs = pause("delay", options.delay ?? "1s");
  const jitter = options.jitter ?? 0.2;
  if (typeof jitter !== "number" || !(jitter >= 0 && jitter <= 1))
    throw invalid(task, `retry.jitter cannot be ${shownValue(jitter)}`, "Give 0 to 1.");
  return {
    attempts: integer(task, "retry.attempts", options.attempts, 1, 1_000),
    backoff: oneOf(task, "retry.backoff", options.backoff ?? "exponential", ["fixed", "exponential"]),
    delayMs,
    maxDelayMs: pause("maxDelay", options.maxDelay ?? Math.max(3_600_000, delayMs)),
    jitter,
  };
}

function overlapPolicy(task: string, given: NonNullable<TaskOptions["overlap"]>): OverlapPolicy {
  if (typeof given === "object") {
    onlyHas(task, "overlap", given, ["allow"]);
    return { policy: "queue", limit: integer(task, "overlap.allow", given.allow, 1, 1_000_000) };
  }
  const policy = oneOf(task, "overlap", given, ["allow", "queue", "skip", "replace"]);
  return { policy, limit: policy === "allow" ? null : 1 };
}

function misfirePolicy(task: string, given: NonNullable<TaskOptions["misfire"]>): MisfirePolicy {
  const options = typeof given === "string" ? { policy: given } : given;
  onlyHas(task, "misfire", options, ["policy", "after", "cap", "perSecond"]);
  return {
    policy: oneOf(task, "misfire", options.policy, ["fire_once", "skip", "all"]),
    afterMs: parseDuration(options.after ?? "10s", `task ${task}: misfire.after`, 1_000),
    cap: integer(task, "misfire.cap", options.cap ?? 100, 1, 10_000),
    perSecond:
      options.perSecond === undefined ? null : integer(task, "misfire.perSecond", options.perSecond, 1, 10_000),
  };
}

function commandSpec(task: string, given: CommandSpec): CommandSpec {
  const { argv, env, cwd, stdin, user, okExitCodes, retryExitCodes } = given;
  onlyHas(task, "command", given, ["argv", "env", "cwd", "stdin", "user", "okExitCodes", "retryExitCodes"]);
  const words =
    Array.isArray(argv) &&
    argv.length > 0 &&
    Array.from(argv).every((word) => typeof word === "string" && !word.includes("\0"));
  if (!words || argv[0] === "") {
    throw invalid(
      task,
      "command.argv must be a list of texts, the program first",
      'For example { argv: ["/usr/bin/true"] }.',
    );
  }
  // A file may say `env:` and nothing after it.
  const isEnv = typeof env === "object" && env !== null && !Array.isArray(env);
  if (env !== undefined && !(isEnv && Object.values(env).every((value) => typeof value === "string"))) {
    throw invalid(task, "command.env must hold texts", 'For example { env: { LANG: "C" } }.');
  }
  return {
    argv: [...argv],
    ...(env === undefined ? {} : { env: { ...env } }),
    ...(cwd === undefined ? {} : { cwd: text(task, "command.cwd", cwd) }),
    ...(stdin === undefined ? {} : { stdin: text(task, "command.stdin", stdin) }),
    ...(user === undefined ? {} : { user: text(task, "command.user", user) }),
    ...exitCodes(task, { okExitCodes, retryExitCodes }),
  };
}

function exitCodes(task: string, lists: Record<string, number[] | undefined>): Record<string, number[]> {
  const given = Object.entries(lists).filter((entry): entry is [string, number[]] => entry[1] !== undefined);
  for (const [name, codes] of given) {
    if (!Array.isArray(codes) || !Array.from(codes).every((code) => Number.isInteger(code) && code >= 0 && code <= 255))
      throw invalid(task, `command.${name} must be a list of exit codes`, "They are 0 to 255, for example [0, 3].");
  }
  return Object.fromEntries(given.map(([name, codes]) => [name, [...codes]]));
}

function onlyHas(task: string, option: string, given: object, names: string[]): void {
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw invalid(task, `${option} has no ${JSON.stringify(unknown)}`, `It has ${names.join(", ")}.`);
}

function invalid(task: string, what: string, hint: string): CarillonError {
  return new CarillonError("TASK_INVALID", `task ${task}: ${what}`, { hint });
}

function text(task: string, option: string, value: unknown): string {
  if (typeof value !== "string") throw invalid(task, `${option} must be a text`, `It is a ${typeof value}.`);
  return value;
}

function integer(task: string, option: string, value: unknown, least: number, most: number): number {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
    throw invalid(task, `${option} cannot be ${shownValue(value)}`, `Give a whole number from ${least} to ${most}.`);
  }
  return value as number;
}

function oneOf<const T extends string>(task: string, option: string, value: unknown, allowed: readonly T[]): T {
  if (!allowed.includes(value as T)) {
    throw invalid(task, `${option} cannot be ${shownValue(value)}`, `Give one of ${allowed.join(", ")}.`);
  }
  return value as T;
}
