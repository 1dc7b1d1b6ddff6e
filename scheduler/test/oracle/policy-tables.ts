/**
 * The effect of each event under each policy of a task. docs/tasks/policies.md shows the tables; tests check that page, the store and the
 * pure functions against them.
 */

/** What becomes of the run that comes due, and of the task's previous run; null: the previous run is unchanged. */
type Meeting = readonly [due: "ready" | "held" | "skipped", before: "held" | "cancelled" | "asked to stop" | null];

export const overlapPolicies = ["allow", "queue", "skip", "replace"] as const;
/** The possible states of a task's previous run when its next run comes due, if the task allows one run at a time. */
export const overlapEvents = [
  "has ended",
  "is ready, and due",
  "is ready, and due later",
  "is under way",
  "waits for its next try",
  "is undecided",
] as const;
export const overlapTable: Record<(typeof overlapEvents)[number], Record<(typeof overlapPolicies)[number], Meeting>> = {
  "has ended": { allow: ["ready", null], queue: ["ready", null], skip: ["ready", null], replace: ["ready", null] },
  "is ready, and due": {
    allow: ["ready", null],
    queue: ["held", null],
    skip: ["skipped", null],
    replace: ["held", null],
  },
  "is ready, and due later": {
    allow: ["ready", null],
    queue: ["ready", "held"],
    skip: ["ready", "held"],
    replace: ["ready", "held"],
  },
  "is under way": {
    allow: ["ready", null],
    queue: ["held", null],
    skip: ["skipped", null],
    replace: ["held", "asked to stop"],
  },
  "waits for its next try": {
    allow: ["ready", null],
    queue: ["held", null],
    skip: ["skipped", null],
    replace: ["ready", "cancelled"],
  },
  "is undecided": { allow: ["ready", null], queue: ["ready", null], skip: ["ready", null], replace: ["ready", null] },
};

export const misfirePolicies = ["fire_once", "skip", "all"] as const;
/** What becomes of each slot, in the order of the slots. */
type Fates = readonly ("run" | "missed")[];
export const misfireEvents = [
  "one slot, unplanned, late by less",
  "one slot, unplanned, later",
  "three slots, unplanned, later",
  "three slots, unplanned, the first two later than `within`",
  "a planned slot, unclaimed, late by less",
  "a planned slot, unclaimed, later",
  "two planned slots, unclaimed, later",
  "two planned slots, unclaimed, both later than `within`",
  "two slots that wait for a place, later",
  "two slots that wait for a place, later, `waiting: true`",
  "two slots that wait for a place, later than `within`, `waiting: true`",
] as const;
export const misfireTable: Record<(typeof misfireEvents)[number], Record<(typeof misfirePolicies)[number], Fates>> = {
  "one slot, unplanned, late by less": { fire_once: ["run"], skip: ["run"], all: ["run"] },
  "one slot, unplanned, later": { fire_once: ["run"], skip: ["missed"], all: ["run"] },
  "three slots, unplanned, later": {
    fire_once: ["missed", "missed", "run"],
    skip: ["missed", "missed", "missed"],
    all: ["run", "run", "run"],
  },
  "three slots, unplanned, the first two later than `within`": {
    fire_once: ["missed", "missed", "run"],
    skip: ["missed", "missed", "missed"],
    all: ["missed", "missed", "run"],
  },
  "a planned slot, unclaimed, late by less": { fire_once: ["run"], skip: ["run"], all: ["run"] },
  "a planned slot, unclaimed, later": { fire_once: ["run"], skip: ["missed"], all: ["run"] },
  "two planned slots, unclaimed, later": {
    fire_once: ["missed", "run"],
    skip: ["missed", "missed"],
    all: ["run", "run"],
  },
  "two planned slots, unclaimed, both later than `within`": {
    fire_once: ["missed", "missed"],
    skip: ["missed", "missed"],
    all: ["missed", "missed"],
  },
  "two slots that wait for a place, later": {
    fire_once: ["run", "run"],
    skip: ["missed", "missed"],
    all: ["run", "run"],
  },
  "two slots that wait for a place, later, `waiting: true`": {
    fire_once: ["missed", "run"],
    skip: ["missed", "missed"],
    all: ["run", "run"],
  },
  "two slots that wait for a place, later than `within`, `waiting: true`": {
    fire_once: ["missed", "missed"],
    skip: ["missed", "missed"],
    all: ["missed", "missed"],
  },
};

export const lossPolicies = ["retry", "fail", "ask"] as const;
type Loss = "ready" | "ready, as if not claimed" | "failed" | "undecided" | "cancelled";
/** The kinds of runs that a worker held when its session was lost. */
export const lossEvents = [
  "a run due after its end",
  "a run not reported as started",
  "a run under way",
  "a run whose cancellation was asked for",
  "a run of a task removed since",
  "a run that lost two workers before",
] as const;
export const lossTable: Record<(typeof lossEvents)[number], Record<(typeof lossPolicies)[number], Loss>> = {
  "a run due after its end": {
    retry: "ready, as if not claimed",
    fail: "ready, as if not claimed",
    ask: "ready, as if not claimed",
  },
  "a run not reported as started": { retry: "ready", fail: "failed", ask: "undecided" },
  "a run under way": { retry: "ready", fail: "failed", ask: "undecided" },
  "a run whose cancellation was asked for": { retry: "cancelled", fail: "cancelled", ask: "cancelled" },
  "a run of a task removed since": { retry: "cancelled", fail: "cancelled", ask: "cancelled" },
  "a run that lost two workers before": { retry: "failed", fail: "failed", ask: "undecided" },
};

export const tryColumns = ["tries left", "none left"] as const;
export const tryEvents = [
  "throws",
  "throws what another try would not change",
  "throws run.retryIn",
  "returns run.snooze",
  "takes too long",
  "is cancelled",
  "returns after it was told of its cancellation",
  "is stopped with its worker",
  "loses its session",
] as const;
type Tried = "tried again" | "put off" | "failed" | "cancelled";
/** What becomes of an attempt, for a task with `onWorkerLost: "retry"`. */
export const tryTable: Record<(typeof tryEvents)[number], Record<(typeof tryColumns)[number], Tried>> = {
  throws: { "tries left": "tried again", "none left": "failed" },
  "throws what another try would not change": { "tries left": "failed", "none left": "failed" },
  "throws run.retryIn": { "tries left": "tried again", "none left": "failed" },
  "returns run.snooze": { "tries left": "put off", "none left": "put off" },
  "takes too long": { "tries left": "tried again", "none left": "failed" },
  "is cancelled": { "tries left": "cancelled", "none left": "cancelled" },
  "returns after it was told of its cancellation": { "tries left": "cancelled", "none left": "cancelled" },
  "is stopped with its worker": { "tries left": "tried again", "none left": "tried again" },
  "loses its session": { "tries left": "tried again", "none left": "tried again" },
};

export const followEnds = ["success", "failure", "any"] as const;
export const followEvents = ["succeeds", "fails", "is tried again", "is cancelled", "is skipped"] as const;
export const followTable: Record<(typeof followEvents)[number], Record<(typeof followEnds)[number], boolean>> = {
  succeeds: { success: true, failure: false, any: true },
  fails: { success: false, failure: true, any: true },
  "is tried again": { success: false, failure: false, any: false },
  "is cancelled": { success: false, failure: false, any: false },
  "is skipped": { success: false, failure: false, any: false },
};

export const dayPolicies = ["skip", "next", "previous"] as const;
export const dayEvents = ["on a day that it runs on", "on another day", "with no such day within 400 days"] as const;
export const dayTable: Record<
  (typeof dayEvents)[number],
  Record<(typeof dayPolicies)[number], "runs" | "skipped" | "moved">
> = {
  "on a day that it runs on": { skip: "runs", next: "runs", previous: "runs" },
  "on another day": { skip: "skipped", next: "moved", previous: "moved" },
  "with no such day within 400 days": { skip: "skipped", next: "skipped", previous: "skipped" },
};

export const blackoutPolicies = ["skip", "delay"] as const;
export const blackoutEvents = [
  "due outside",
  "due in it",
  "due at its last instant",
  "due in it and in one that skips",
  "due in it, where it has no end within a year",
] as const;
export const blackoutTable: Record<
  (typeof blackoutEvents)[number],
  Record<(typeof blackoutPolicies)[number], "runs" | "skipped" | "delayed">
> = {
  "due outside": { skip: "runs", delay: "runs" },
  "due in it": { skip: "skipped", delay: "delayed" },
  "due at its last instant": { skip: "runs", delay: "runs" },
  "due in it and in one that skips": { skip: "skipped", delay: "skipped" },
  "due in it, where it has no end within a year": { skip: "skipped", delay: "skipped" },
};
