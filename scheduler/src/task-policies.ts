import { type Duration, parseDuration } from "./duration.ts";
import { CarillonError } from "./errors.ts";
import { shownValue } from "./json.ts";
import { limits } from "./limits.ts";
import type { ScheduleSpec } from "./schedule.ts";

/** Who runs a task's runs: see docs/routing.md. */
export interface RouteOptions {
  /**
   * Default "any": whoever asks first. The others name one worker a run: "sticky" the one that had the last, { hash: "key" }
   * the one that a run's key falls to, { pin: NAME } that one only. "broadcast" makes one run a live worker, { shards: n }
   * n runs, each told its part by `run.shard`.
   */
  route?:
    | "any"
    | "random"
    | "round-robin"
    | "least-loaded"
    | "least-recently-used"
    | "sticky"
    | "broadcast"
    | { hash: "key" }
    | { pin: string }
    | { shards: number };
  /** Only workers that have all of these labels. Goes with every route. */
  labels?: Record<string, string>;
}

/** How many of a task's runs at once, and how many in a time: see docs/limits.md. */
export interface LimitOptions {
  /** Runs under way at once, beside `overlap`: of one key, and on one worker. */
  limit?: { perKey?: number; perWorker?: number };
  /** So many runs begin in any span of this length; with `key` of each key. null: any number. */
  rate?: { limit: number; per: Duration; key?: boolean } | null;
}

export type Route =
  | { by: "random" | "round-robin" | "least-loaded" | "least-recently-used" | "sticky" | "hash" | "broadcast" }
  | { by: "pin"; node: string }
  | { by: "shards"; shards: number };

/** Absent where the task has none, so that tasks without are as they always were. */
export interface PolicyParts {
  route?: Route;
  labels?: Record<string, string>;
  limit?: { perKey: number | null; perWorker: number | null };
  rate?: { limit: number; perMs: number; byKey: boolean };
}

export const policyOptions: Record<keyof RouteOptions | keyof LimitOptions, true> = {
  route: true,
  labels: true,
  limit: true,
  rate: true,
};

/** Parts that a definition may be without. */
export const policyNames = Object.keys(policyOptions) as (keyof PolicyParts)[];

const plainRoutes = ["random", "round-robin", "least-loaded", "least-recently-used", "sticky", "broadcast"] as const;
const routeHint = `Give any, ${plainRoutes.join(", ")}, { hash: "key" }, { pin: "NAME" } or { shards: N }.`;
const longestRateMs = 366 * 86_400_000;
const labelsMax = 20;

/** @throws TASK_INVALID */
export function policyParts(task: string, options: RouteOptions & LimitOptions): PolicyParts {
  const parts: PolicyParts = {};
  const route = routeOf(task, options.route === undefined ? "any" : options.route);
  if (route) parts.route = route;
  const labels = labelsOf(task, options.labels ?? {});
  if (labels) parts.labels = labels;
  const limit = limitOf(task, options.limit ?? {});
  if (limit) parts.limit = limit;
  if (options.rate != null) parts.rate = rateOf(task, options.rate);
  return parts;
}

/** What cannot stand together in one task, whatever of it was edited last. @throws TASK_INVALID */
export function checkTogether(
  task: string,
  { route, limit, rate }: PolicyParts,
  overlap: { policy: string; limit: number | null },
  schedule: ScheduleSpec,
): void {
  const counted = limit?.perKey != null ? "limit.perKey" : limit ? "limit.perWorker" : rate ? "rate" : undefined;
  if (counted && (overlap.policy === "skip" || overlap.policy === "replace")) {
    throw invalid(
      task,
      `${counted} cannot go with overlap: ${JSON.stringify(overlap.policy)}`,
      'What finds no place waits for one: use overlap "queue" or { allow: N }.',
    );
  }
  if (route?.by !== "broadcast" && route?.by !== "shards") return;
  const what = route.by === "broadcast" ? 'route: "broadcast"' : "route: { shards }";
  if (counted || overlap.limit !== null) {
    throw invalid(
      task,
      `${what} cannot go with ${counted ?? "an overlap limit"}`,
      "It makes several runs of one, which all run at once.",
    );
  }
  if (schedule.type === "every" && schedule.mode === "delay") {
    throw invalid(
      task,
      `${what} cannot go with a fixed delay`,
      "There is no one end to count from: use cron, or every without mode delay.",
    );
  }
}

/** One worker is chosen for each run, before it can be claimed. */
export const isRouted = ({ route, labels, limit }: PolicyParts): boolean =>
  route !== undefined || labels !== undefined || limit?.perWorker != null;

/** Its runs begin when there is room for them by a key, a worker or a rate, beside what overlap says. */
export const isPaced = ({ limit, rate }: PolicyParts): boolean => limit !== undefined || rate !== undefined;

/** Its runs are counted by their keys. */
export const isKeyed = ({ limit, rate }: PolicyParts): boolean => limit?.perKey != null || rate?.byKey === true;

function routeOf(task: string, given: NonNullable<RouteOptions["route"]>): Route | undefined {
  if (given === "any") return undefined;
  if (typeof given === "string" && (plainRoutes as readonly string[]).includes(given)) return { by: given } as Route;
  if (typeof given === "object" && given !== null && Object.keys(given).length === 1) {
    if ("hash" in given && given.hash === "key") return { by: "hash" };
    if ("pin" in given) {
      if (typeof given.pin !== "string" || given.pin === "")
        throw invalid(task, "route.pin must be a worker's name", 'For example { pin: "atlas" }; see carillon nodes.');
      return { by: "pin", node: given.pin };
    }
    if ("shards" in given) return { by: "shards", shards: count(task, "route.shards", given.shards, limits.shards) };
  }
  throw invalid(task, `route cannot be ${shownValue(given)}`, routeHint);
}

function labelsOf(task: string, given: Record<string, string>): Record<string, string> | undefined {
  const entries =
    typeof given === "object" && given !== null && !Array.isArray(given) ? Object.entries(given) : undefined;
  if (
    !entries ||
    entries.length > labelsMax ||
    !entries.every(([name, value]) => name !== "" && typeof value === "string")
  )
    throw invalid(task, "labels must hold texts", `For example { gpu: "a100" }, at most ${labelsMax}.`);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function limitOf(task: string, given: NonNullable<LimitOptions["limit"]>): PolicyParts["limit"] {
  if (typeof given !== "object" || given === null)
    throw invalid(
      task,
      `limit cannot be ${shownValue(given)}`,
      "Give { perKey: N } or { perWorker: N }; of a task: overlap: { allow: N }.",
    );
  const { perKey, perWorker, ...rest } = given;
  noOthers(task, "limit", rest, "perKey, perWorker");
  if (perKey === undefined && perWorker === undefined) return undefined;
  return {
    perKey: perKey === undefined ? null : count(task, "limit.perKey", perKey, 1_000_000),
    perWorker: perWorker === undefined ? null : count(task, "limit.perWorker", perWorker, 1_000_000),
  };
}

function rateOf(task: string, given: NonNullable<LimitOptions["rate"]>): PolicyParts["rate"] {
  if (typeof given !== "object")
    throw invalid(task, `rate cannot be ${shownValue(given)}`, 'For example { limit: 100, per: "1m" }.');
  const { limit, per, key = false, ...rest } = given;
  noOthers(task, "rate", rest, "limit, per, key");
  if (typeof key !== "boolean") throw invalid(task, `rate.key cannot be ${shownValue(key)}`, "Give true or false.");
  if (per === undefined) throw invalid(task, "rate.per is missing", 'For example { limit: 100, per: "1m" }.');
  const perMs = parseDuration(per, `task ${task}: rate.per`, 100);
  if (perMs > longestRateMs) throw invalid(task, "rate.per is longer than a year", "Give a shorter one.");
  return { limit: count(task, "rate.limit", limit, 1_000_000), perMs, byKey: key };
}

function noOthers(task: string, option: string, rest: object, names: string): void {
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) throw invalid(task, `${option} has no ${JSON.stringify(unknown)}`, `It has ${names}.`);
}

function count(task: string, option: string, value: unknown, most: number): number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most) return value as number;
  throw invalid(task, `${option} cannot be ${shownValue(value)}`, `Give a whole number from 1 to ${most}.`);
}

function invalid(task: string, what: string, hint: string): CarillonError {
  return new CarillonError("TASK_INVALID", `task ${task}: ${what}`, { hint });
}
