import { CarillonError } from "../base/errors.ts";
import { type Json, shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import type { Random } from "../base/random.ts";
import type { ScheduleSpec } from "../schedule/schedule.ts";
import {
  choice,
  count,
  duration,
  flag,
  inner,
  isObject,
  type Kind,
  object,
  type Shape,
  share,
  stranger,
  texts,
  wrong,
} from "./kinds/kinds.ts";

export type Route =
  | { by: "random" | "round-robin" | "least-loaded" | "least-recently-used" | "sticky" | "hash" | "broadcast" }
  | { by: "pin"; node: string }
  | { by: "shards"; shards: number };

/**
 * The policies that limit or direct a task's runs. A field is left out if the task lacks it, so that texts of older definitions do not
 * change.
 */
export interface PolicyParts {
  route?: Route;
  labels?: Record<string, string>;
  limit?: { perKey: number | null; perWorker: number | null };
  rate?: { limit: number; perMs: number; byKey: boolean };
  /** Left out if each attempt may go to a worker of any release. */
  pin?: "release";
  /** Left out if it is "any". */
  onReleaseGone?: "wait" | "fail";
}

/**
 * What happens to a run that finds other runs of its task executing. Only `allow` does not limit the number of concurrent runs.
 */
export interface OverlapPolicy {
  policy: "allow" | "queue" | "skip" | "replace";
  /** The most concurrent runs; null with `allow`, which has no limit. */
  limit: number | null;
  /** For `queue` only: the most waiting runs; a further run is skipped. Left out if there is no such limit. */
  waiting?: number;
}

/** What happens to slots that could not be planned or started within `afterMs` of their time. */
export interface MisfirePolicy {
  policy: "fire_once" | "skip" | "all";
  afterMs: number;
  /** For `all` only: the newest `cap` slots run; older slots are recorded as missed. */
  cap: number;
  /** For `all` only: how many of these runs become due each second; null for all at once. */
  perSecond: number | null;
  /** True if the policy also applies to runs that wait because of a concurrency limit. Default: true for `skip`, false for the others. */
  waiting?: boolean;
  /** Under every policy, a slot that is later than this, in ms, is missed. Left out if there is no such limit. */
  withinMs?: number;
}

interface Together {
  overlap: OverlapPolicy;
  schedule: ScheduleSpec;
  history?: "failures";
  pauseAfter?: number;
}

/** Checks whether the options can be combined in one task, whichever was edited last. @throws TASK_INVALID */
export function checkTogether(
  task: string | undefined,
  { route, limit, rate, pin, overlap, schedule, history, pauseAfter }: PolicyParts & Together,
): void {
  const refuse = (path: string, what: string, hint: string) =>
    new CarillonError("TASK_INVALID", `${task === undefined ? "" : `task ${task}: `}${what}`, { hint, path });
  if (pauseAfter !== undefined && history === "failures")
    throw refuse(
      "pauseAfter",
      'pauseAfter cannot go with history: "failures"',
      "Of a run that succeeded no row is kept, so that nobody knows whether one came between two failures.",
    );
  if (pin !== undefined && route?.by === "broadcast")
    throw refuse("pin", 'pin cannot go with route: "broadcast"', "A part of a broadcast is for one worker already.");
  const counted = limit?.perKey != null ? "limit.perKey" : limit ? "limit.perWorker" : rate ? "rate" : undefined;
  if (counted && (overlap.policy === "skip" || overlap.policy === "replace" || overlap.waiting !== undefined)) {
    throw refuse(
      counted,
      `${counted} cannot go with overlap: ${JSON.stringify(overlapKind.write(overlap))}`,
      'What finds no place waits for one: use overlap "queue" or { allow: N }.',
    );
  }
  if (route?.by !== "broadcast" && route?.by !== "shards") return;
  const what = route.by === "broadcast" ? 'route: "broadcast"' : "route: { shards }";
  if (counted || overlap.limit !== null) {
    throw refuse(
      "route",
      `${what} cannot go with ${counted ?? "an overlap limit"}`,
      "It makes several runs of one, which all run at once.",
    );
  }
  if (schedule.type === "every" && schedule.mode === "delay") {
    throw refuse(
      "route",
      `${what} cannot go with a fixed delay`,
      "There is no one end to count from: use cron, or every without mode delay.",
    );
  }
}

/** Returns true if a limit per key or per worker, or a rate, can delay the task's runs in addition to the overlap policy. */
export const isPaced = ({ limit, rate }: PolicyParts): boolean => limit !== undefined || rate !== undefined;

const plainRoutes = ["random", "round-robin", "least-loaded", "least-recently-used", "sticky", "broadcast"] as const;
const routeHint = `Give any, ${plainRoutes.join(", ")}, { hash: "key" }, { pin: "NAME" } or { shards: N }.`;
const shards = count(1, limits.shards);
const routeShape = (name: string, description: string, shape: Shape): Shape => ({
  is: "object",
  fields: { [name]: { shape, required: true, description, usual: undefined } },
});

/** The route `any` is stored as undefined. */
export const routeKind: Kind<Route | undefined> = {
  shape: {
    is: "either",
    of: [
      { is: "choice", values: ["any", ...plainRoutes] },
      routeShape("hash", "The worker that the run's key falls to.", { is: "choice", values: ["key"] }),
      routeShape("pin", "The worker of this name only.", { is: "text", longest: 100, isName: true }),
      routeShape("shards", "The number of runs that each run is split into.", shards.shape),
    ],
  },
  hint: routeHint,
  read(given, place) {
    if (given === "any") return undefined;
    if (typeof given === "string" && (plainRoutes as readonly string[]).includes(given)) return { by: given } as Route;
    if (isObject(given) && Object.keys(given).length === 1) {
      if (given.hash === "key") return { by: "hash" };
      if ("pin" in given) {
        if (typeof given.pin === "string" && given.pin !== "") return { by: "pin", node: given.pin };
        throw wrong(
          inner(place, "pin"),
          " must be a worker's name",
          'For example { pin: "atlas" }; see carillon nodes.',
        );
      }
      if ("shards" in given) return { by: "shards", shards: shards.read(given.shards, inner(place, "shards")) };
    }
    throw wrong(place, ` cannot be ${shownValue(given)}`, routeHint);
  },
  write(kept): Json {
    if (kept === undefined) return "any";
    if (kept.by === "pin") return { pin: kept.node };
    if (kept.by === "shards") return { shards: kept.shards };
    return kept.by === "hash" ? { hash: "key" } : kept.by;
  },
};

const labelsMost = 20;
export const labelsKind = texts(labelsMost, '{ gpu: "a100" }');

const runsAtOnce = count(1, 1_000_000);

export const limitKind = object<NonNullable<PolicyParts["limit"]>>(
  {
    perKey: { kind: runsAtOnce, usual: null, description: "Runs of one key at once." },
    perWorker: { kind: runsAtOnce, usual: null, description: "Runs on one worker at once." },
  },
  { example: "{ perKey: N } or { perWorker: N }; of a whole task it is overlap: { allow: N }" },
);

export const rateKind = object<NonNullable<PolicyParts["rate"]>>(
  {
    limit: {
      kind: runsAtOnce,
      required: true,
      description: "The number of tries that may begin in any span of that length.",
    },
    per: {
      kind: duration({ leastMs: 100, aYearAtMost: true }),
      kept: "perMs",
      required: true,
      description: "The length of the span.",
    },
    key: { kind: flag, kept: "byKey", usual: false, description: "Whether each key has a rate of its own." },
  },
  { example: '{ limit: 100, per: "1m" }' },
);

const pause = duration({ leastMs: 0, aYearAtMost: true });
const longestPauseMs = 3_600_000;

export const backoffs = ["fixed", "exponential"] as const;

export const retryKind = object<RetryPolicy>(
  {
    attempts: { kind: count(1, 1_000), required: true, description: "The number of tries, the first included." },
    backoff: {
      kind: choice(backoffs),
      usual: "exponential",
      description: "Whether the pause doubles from try to try.",
    },
    delay: { kind: pause, kept: "delayMs", usual: "1s", description: "The pause after the first try." },
    maxDelay: {
      kind: pause,
      kept: "maxDelayMs",
      usualOf: ({ delayMs }) => Math.max(longestPauseMs, delayMs as number),
      description: "The longest pause; default: an hour, or `delay` if that is longer.",
    },
    jitter: {
      kind: share,
      usual: 0.2,
      description: "The random part of each pause, so that tries do not come together: 0 none, 1 all.",
    },
  },
  { example: '3 or { attempts: 3, delay: "2s" }', alone: "attempts", mergedByEdits: true },
);

export const overlapPolicies = ["allow", "queue", "skip", "replace"] as const;
const places = count(1, 1_000_000);

export const overlapKind: Kind<OverlapPolicy> = {
  shape: {
    is: "either",
    of: [
      { is: "choice", values: overlapPolicies },
      {
        is: "object",
        fields: {
          allow: {
            shape: places.shape,
            required: false,
            description: "The number of runs at once; others wait.",
            usual: 1,
          },
          queue: {
            shape: places.shape,
            required: false,
            description: "The number of runs that wait; others are skipped. Default: no limit.",
            usual: undefined,
          },
        },
      },
    ],
  },
  hint: `Give one of ${overlapPolicies.join(", ")}, { allow: N }, { queue: N } or both.`,
  read(given, place) {
    if (!isObject(given)) {
      const policy = choice(overlapPolicies).read(given, place);
      return { policy, limit: policy === "allow" ? null : 1 };
    }
    const unknown = Object.keys(given).find((name) => name !== "allow" && name !== "queue");
    if (unknown !== undefined) throw stranger(place, unknown, ["allow", "queue"]);
    const { allow, queue } = given;
    const limit = allow === undefined && queue !== undefined ? 1 : places.read(allow, inner(place, "allow"));
    if (queue === undefined) return { policy: "queue", limit };
    return { policy: "queue", limit, waiting: places.read(queue, inner(place, "queue")) };
  },
  write: ({ policy, limit, waiting }) =>
    policy === "queue" && (limit !== 1 || waiting !== undefined)
      ? { ...(limit !== 1 && { allow: limit }), ...(waiting !== undefined && { queue: waiting }) }
      : policy,
};

export const misfirePolicies = ["fire_once", "skip", "all"] as const;

export const misfireKind = object<MisfirePolicy>(
  {
    policy: {
      kind: choice(misfirePolicies),
      required: true,
      description: "One run for all late slots, none, or one for each.",
    },
    after: {
      kind: duration({ leastMs: 1_000 }),
      kept: "afterMs",
      usual: "10s",
      description: "How late a slot must be for the policy to apply.",
    },
    cap: {
      kind: count(1, 10_000),
      usual: 100,
      description: "With `all`: the newest slots that are run; older ones are recorded as missed.",
    },
    perSecond: {
      kind: count(1, 10_000),
      usual: null,
      description: "With `all`: the number of slots that become due each second; default: all at once.",
    },
    waiting: {
      kind: flag,
      usualOf: ({ policy }) => (policy === "skip" ? true : undefined),
      description:
        "The policy also applies to slots that wait for concurrency of their task; default: with `skip` alone.",
    },
    within: {
      kind: duration({ leastMs: 1_000 }),
      kept: "withinMs",
      usualOf: () => undefined,
      description: "Slots that are later than this are missed, whatever the policy; default: no limit.",
    },
  },
  {
    example: '"all" or { policy: "all", after: "1m", within: "1h" }',
    alone: "policy",
    mergedByEdits: true,
    together({ afterMs, withinMs }, place) {
      if (withinMs === undefined || withinMs > afterMs) return;
      const what = ` is ${withinMs} ms, and \`after\` ${afterMs} ms`;
      throw wrong(
        inner(place, "within"),
        what,
        "The policy holds for what is later than `after`: give more than that.",
      );
    },
  },
);

export interface RetryPolicy {
  /** The number of tries, including the first. */
  attempts: number;
  backoff: (typeof backoffs)[number];
  delayMs: number;
  /** The longest pause between two tries, in ms. */
  maxDelayMs: number;
  /** A number from 0 to 1. The pause is a random value in [pause × (1 − jitter), pause]; 0 means no randomness. */
  jitter: number;
}

/**
 * Returns how long to wait before the next try.
 * @param attempt the number of the try that has just failed, counted from 1
 * @returns the time in ms; null if no try is left
 */
export function retryDelay(policy: RetryPolicy, attempt: number, random: Random): number | null {
  if (attempt >= policy.attempts) return null;
  // The exponent is limited to 52, so that the product stays finite. `maxDelayMs` limits all larger values anyway.
  const grown = policy.backoff === "fixed" ? policy.delayMs : policy.delayMs * 2 ** Math.min(attempt - 1, 52);
  const pause = Math.min(grown, policy.maxDelayMs);
  return Math.round(pause * (1 - policy.jitter * random.next()));
}
