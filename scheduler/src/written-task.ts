/**
 * A task as a file writes it: the options of the library, durations as texts, the schedule in the words of `cron`, `every`
 * and `at`. What is as it would be anyway is left out, so a file says what is particular about a task.
 */
import type { BlackoutWindow } from "./blackout.ts";
import { formatDuration } from "./duration.ts";
import { CarillonError, isCarillonError } from "./errors.ts";
import type { HttpSpec } from "./http-task.ts";
import { type Json, sortedJson } from "./json.ts";
import { at, cron, every, manual, type ScheduleSpec, validateSchedule } from "./schedule.ts";
import { defineTask, type TaskDefinition, type TaskOptions } from "./task.ts";
import { partCalled } from "./task-edits.ts";

export type WrittenTask = { [option: string]: Json };

/** The definition that a file's task is. @throws what `defineTask` throws */
export function readWritten(name: string, written: unknown): TaskDefinition {
  if (!isObject(written))
    throw invalid(name, "its options must be an object", 'For example { schedule: "0 2 * * *", timeout: "1h" }.');
  const empty = Object.entries(written).find(([option, value]) => value === null && !nullable.has(option))?.[0];
  if (empty !== undefined) throw invalid(name, `${empty} is empty`, "Give it a value, or leave it out.");
  const { schedule, ...options } = written;
  if (options.command !== undefined && !isObject(options.command))
    throw invalid(name, "command must be an object", 'For example { argv: ["/usr/bin/true"] }.');
  return defineTask(name, {
    ...(options as TaskOptions),
    ...(schedule === undefined ? {} : { schedule: readSchedule(name, schedule) }),
  });
}

const nullable = new Set(["timeout", "calendar", "blackout", "slotPayload", "payloadSchema"]);

/** A text is a cron in UTC, or "manual". @throws SCHEDULE_INVALID, TASK_INVALID and what the schedule's own check throws */
export function readSchedule(name: string, written: unknown): ScheduleSpec {
  if (typeof written === "string") return written.trim() === "manual" ? manual : cron(written);
  if (!isObject(written)) throw invalid(name, "schedule must be a text or an object", scheduleHint);
  if ("type" in written) return validateSchedule(written);
  const kinds = ["cron", "every", "at"].filter((kind) => kind in written);
  if (kinds.length !== 1)
    throw invalid(
      name,
      `schedule has ${kinds.length === 0 ? "none" : "more than one"} of cron, every, at`,
      scheduleHint,
    );
  const { cron: expression, every: period, at: time, ...options } = written;
  if (expression !== undefined) return cron(expression as string, options);
  if (period !== undefined) return every(period as string, options);
  const stranger = Object.keys(options)[0];
  if (stranger !== undefined) throw invalid(name, `schedule.${stranger} does not go with at`, scheduleHint);
  return at(time as string);
}

const scheduleHint =
  'Such as "0 2 * * *", { cron: "0 2 * * *", zone: "Europe/Berlin" }, { every: "5m" }, { at: "2027-01-01T00:00:00Z" } or "manual".';

/** The part of the options that an error of `readWritten` is about, such as "retry.attempts"; "": none in particular. */
export function pathOf(name: string, error: unknown): string {
  if (!isCarillonError(error)) return "";
  const text = error.message.startsWith(`task ${name}: `)
    ? error.message.slice(`task ${name}: `.length)
    : error.message;
  if (/^(?:CRON_|ZONE_|SLOT_|SCHEDULE_)/.test(error.code) || /^(?:jitter|every|anchor|at)\b/.test(text))
    return "schedule";
  const [, unknown] = /^there is no option "([^"]+)"/.exec(text) ?? [];
  if (unknown !== undefined) return unknown;
  const [, outer, inner] = /^([\w.]+) has no "([^"]+)"/.exec(text) ?? [];
  if (outer !== undefined) return `${outer}.${inner}`;
  const path = /^[a-zA-Z]+(?:\.[a-zA-Z]+)*/.exec(text)?.[0] ?? "";
  return partCalled(path.split(".")[0] as string) === undefined ? "" : path;
}

/** @returns only what is not as `defineTask` would have it anyway. `readWritten` of it is the definition, edits left out. */
export function writtenTask(definition: TaskDefinition): WrittenTask {
  const plain = whole(defineTask(definition.name));
  const written = whole(definition);
  return Object.fromEntries(
    Object.entries(written).filter(([option, value]) => sortedJson(value) !== sortedJson(plain[option])),
  );
}

/** The same as options of the library, and of the HTTP API: `defineTask` of it is the definition, edits left out. */
export const givenOptions = (definition: TaskDefinition): TaskOptions => ({
  ...(writtenTask(definition) as TaskOptions),
  schedule: definition.schedule,
});

function whole(definition: TaskDefinition): WrittenTask {
  const { retry, overlap, misfire, route, limit, rate, after, calendar, blackout, http, command } = definition;
  return {
    description: definition.description,
    group: definition.group,
    schedule: writtenSchedule(definition.schedule),
    ...(definition.slotPayload === null ? {} : { slotPayload: definition.slotPayload }),
    ...(definition.payloadSchema === undefined ? {} : { payloadSchema: definition.payloadSchema }),
    priority: definition.priority,
    timeout: definition.timeoutMs === null ? null : formatDuration(definition.timeoutMs),
    retry: alone(
      "attempts",
      sparse([
        ["attempts", retry.attempts],
        ["backoff", retry.backoff, "exponential"],
        ["delay", formatDuration(retry.delayMs), "1s"],
        ["maxDelay", formatDuration(retry.maxDelayMs), formatDuration(Math.max(3_600_000, retry.delayMs))],
        ["jitter", retry.jitter, 0.2],
      ]),
    ),
    overlap: overlap.policy === "queue" && overlap.limit !== 1 ? { allow: overlap.limit } : overlap.policy,
    misfire: alone(
      "policy",
      sparse([
        ["policy", misfire.policy],
        ["after", formatDuration(misfire.afterMs), "10s"],
        ["cap", misfire.cap, 100],
        ["perSecond", misfire.perSecond, null],
      ]),
    ),
    onWorkerLost: definition.onWorkerLost,
    grace: formatDuration(definition.graceMs),
    ...(definition.history === undefined ? {} : { history: definition.history }),
    ...(command === null ? {} : { command: command as unknown as Json }),
    ...(http === undefined ? {} : { http: writtenHttp(http) }),
    ...(calendar === undefined
      ? {}
      : {
          calendar: sparse([
            ["name", calendar.name],
            ["on", calendar.on, "working-days"],
            ["otherwise", calendar.otherwise, "skip"],
          ]),
        }),
    ...(blackout === undefined ? {} : { blackout: blackout.map(writtenWindow) }),
    ...(route === undefined ? {} : { route: writtenRoute(route) }),
    ...(definition.labels === undefined ? {} : { labels: definition.labels }),
    ...(limit === undefined
      ? {}
      : {
          limit: sparse([
            ["perKey", limit.perKey, null],
            ["perWorker", limit.perWorker, null],
          ]),
        }),
    ...(rate === undefined
      ? {}
      : {
          rate: sparse([
            ["limit", rate.limit],
            ["per", formatDuration(rate.perMs)],
            ["key", rate.byKey, false],
          ]),
        }),
    ...(after === undefined
      ? {}
      : {
          after: after.on === "success" ? single(after.tasks) : { tasks: single(after.tasks), on: after.on },
        }),
  };
}

export function writtenSchedule(spec: ScheduleSpec): Json {
  const jitter: WrittenTask = "jitterMs" in spec && spec.jitterMs ? { jitter: formatDuration(spec.jitterMs) } : {};
  switch (spec.type) {
    case "cron": {
      const plain = cron(spec.expression, { zone: spec.zone });
      const { gap, overlap } = plain as typeof spec;
      return {
        cron: spec.expression,
        zone: spec.zone,
        ...(spec.gap === gap ? {} : { gap: spec.gap }),
        ...(spec.overlap === overlap ? {} : { overlap: spec.overlap }),
        ...jitter,
      };
    }
    case "every":
      return {
        every: formatDuration(spec.everyMs),
        ...(spec.mode === "rate" ? {} : { mode: spec.mode }),
        ...(spec.anchorMs === undefined ? {} : { anchor: new Date(spec.anchorMs).toISOString() }),
        ...jitter,
      };
    case "at":
      return { at: new Date(spec.atMs).toISOString() };
    case "manual":
      return "manual";
  }
}

const writtenHttp = (http: HttpSpec): Json =>
  sparse([
    ["url", http.url],
    ["method", http.method, "POST"],
    ["headers", http.headers, {}],
    ...(http.body === undefined ? [] : ([["body", http.body]] as [string, Json][])),
    ["timeout", formatDuration(http.timeoutMs), "30s"],
    ["okStatuses", http.okStatuses, ["2xx"]],
    ["retryStatuses", http.retryStatuses, [408, 429, "5xx"]],
    ["redirects", http.redirects, 0],
  ]);

const dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const writtenWindow = (window: BlackoutWindow): Json =>
  "fromMs" in window
    ? sparse([
        ["from", new Date(window.fromMs).toISOString()],
        ["to", new Date(window.toMs).toISOString()],
        ["then", window.then, "skip"],
      ])
    : sparse([
        ["from", window.from],
        ["to", window.to],
        ["zone", window.zone, "UTC"],
        ["days", window.days === null ? null : window.days.map((day) => dayNames[day] as string), null],
        ["then", window.then, "skip"],
      ]);

function writtenRoute(route: NonNullable<TaskDefinition["route"]>): Json {
  if (route.by === "pin") return { pin: route.node };
  if (route.by === "shards") return { shards: route.shards };
  return route.by === "hash" ? { hash: "key" } : route.by;
}

/** Without those that are as they would be anyway. */
const sparse = (parts: [name: string, value: Json, usual?: Json][]): WrittenTask =>
  Object.fromEntries(
    parts
      .filter((part) => part.length < 3 || JSON.stringify(part[1]) !== JSON.stringify(part[2]))
      .map(([name, value]) => [name, value]),
  );

const alone = (name: string, parts: WrittenTask): Json =>
  Object.keys(parts).length === 1 ? (parts[name] as Json) : parts;
const single = (names: string[]): Json => (names.length === 1 ? (names[0] as string) : names);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export interface FieldChange {
  /** "retry.attempts" */
  path: string;
  /** undefined: as it would be anyway. */
  was: Json | undefined;
  is: Json | undefined;
}

/** What differs between two definitions, field by field, in a file's words. */
export function fieldChanges(before: TaskDefinition, after: TaskDefinition): FieldChange[] {
  const [a, b] = [whole(before), whole(after)];
  return changesIn("", a, b);
}

function changesIn(path: string, a: Json | undefined, b: Json | undefined): FieldChange[] {
  if (sortedJson(a) === sortedJson(b)) return [];
  // A payload, a body, a list is one thing; a schedule of another kind too.
  const opened = isObject(a) && isObject(b) && !/(?:^slotPayload|\.body)$/.test(path) && !otherKind(path, a, b);
  if (!opened) return [{ path, was: a, is: b }];
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.flatMap((name) => changesIn(path === "" ? name : `${path}.${name}`, a[name] as Json, b[name] as Json));
}

const otherKind = (path: string, a: object, b: object) =>
  path === "schedule" && Object.keys(a)[0] !== Object.keys(b)[0];

const invalid = (task: string, what: string, hint: string) =>
  new CarillonError("TASK_INVALID", `task ${task}: ${what}`, { hint });
