/**
 * The options of a task, each described by one row. From the rows are derived: the check in `defineTask`, the HTTP contract, the form of
 * files and exports, `carillon tasks edit`, the console's fields and docs/reference/task-options.md. To add an option, add its types and
 * its row here, the code that applies it, and a test.
 */
import type { Duration } from "../base/duration.ts";
import type { Json } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import type { ScheduleSpec } from "../schedule/schedule.ts";
import type { SlotRuleOptions, SlotRules } from "../schedule/slot-rules.ts";
import { type AfterOption, type AfterSpec, afterKind } from "./after.ts";
import { type CommandSpec, commandKind } from "./command.ts";
import { type HttpOptions, type HttpSpec, httpKind } from "./http.ts";
import { choice, count, duration, json, type Kind, name, text } from "./kinds/kinds.ts";
import { ownerRow } from "./kinds/owner.ts";
import { runLabelsRow } from "./kinds/run-labels.ts";
import { scheduleKind } from "./kinds/schedule.ts";
import { blackoutKind, calendarKind } from "./kinds/slot-rules.ts";
import { durabilityRow, historyRow } from "./kinds/storage.ts";
import { type PayloadSchema, payloadSchemaKind } from "./payload-schema.ts";
import {
  labelsKind,
  limitKind,
  type MisfirePolicy,
  misfireKind,
  type OverlapPolicy,
  overlapKind,
  type PolicyParts,
  type RetryPolicy,
  rateKind,
  retryKind,
  routeKind,
} from "./policies.ts";

/** A task's definition in the stored form: plain JSON, complete, versioned. A part that is left out has its default. */
export interface TaskDefinition extends SlotRules, PolicyParts {
  name: string;
  description: string;
  group: string;
  /** Left out if it has none. */
  owner?: string;
  schedule: ScheduleSpec;
  /** The payload of the runs that the schedule creates. */
  slotPayload: Json;
  payloadSchema?: PayloadSchema;
  /** From 0 (claimed last) to 9 (claimed first). */
  priority: number;
  timeoutMs: number | null;
  retry: RetryPolicy;
  overlap: OverlapPolicy;
  misfire: MisfirePolicy;
  onWorkerLost: "retry" | "fail" | "ask";
  /** Left out if it has its default. */
  workerLosses?: number;
  /** Left out if failures do not pause the task. */
  pauseAfter?: number;
  /** Left out if the task stays when its schedule has no slot left. */
  atEnd?: "alarm" | "remove";
  /** How long a claim remains valid after its worker's session has ended, in ms, in case the worker returns. */
  graceMs: number;
  command: CommandSpec | null;
  http?: HttpSpec;
  /** Left out if the rows of all ended runs are stored. With `failures`, successful runs leave no row; see docs/operate/history.md. */
  history?: "failures";
  /** Left out if enqueues are acknowledged only once they are on the store's disk; see docs/tasks/durability.md. */
  durability?: "relaxed";
  /** Left out if the task's runs have only the labels that their enqueue gives them. */
  runLabels?: Record<string, string>;
  /** The tasks after whose runs this task's runs are created. A task with this part has no schedule. */
  after?: AfterSpec;
  /** The task of which this task is a schedule: see schedule-of.ts. */
  of?: string;
  /** For each edited part, its value in the code, or in the task's other definition. See edits.ts. */
  asDefined?: EditedParts;
}

export type TaskPart = Exclude<keyof TaskDefinition, "name" | "asDefined">;
export type EditedParts = Partial<Pick<TaskDefinition, TaskPart>>;

/** The options of a task. A test checks that these comments equal the descriptions in the rows below. */
export interface TaskOptions {
  /** What the task is for. Default "". */
  description?: string;
  /** The workers that can run it: those that serve this group. Default "default". */
  group?: string;
  /** The team or person that answers for it: alarm rules can be limited to owners, and so sent to their channels. */
  owner?: string | null;
  /** When its runs are due: a cron in a zone, an interval, one moment, or only by hand. Default "manual". */
  schedule?: ScheduleSpec;
  /** The payload of the runs that its schedule makes. */
  slotPayload?: unknown;
  /** JSON Schema of its payloads; default: the schema in code as JSON Schema, if it can be written so. */
  payloadSchema?: object | null;
  /** Due runs of a higher priority are claimed first. Default 5. */
  priority?: number;
  /** The time after which an attempt is stopped. */
  timeout?: Duration | null;
  /** The number of tries, the first included, or the whole policy of tries and pauses. Default 1. */
  retry?:
    | number
    | { attempts: number; backoff?: "fixed" | "exponential"; delay?: Duration; maxDelay?: Duration; jitter?: number };
  /** What happens to a run that is due while another run of the task is under way. Default "allow". */
  overlap?: "allow" | "queue" | "skip" | "replace" | { allow?: number; queue?: number };
  /** What happens to slots that could not be planned or started in time. Default "fire_once". */
  misfire?:
    | "fire_once"
    | "skip"
    | "all"
    | {
        policy: "fire_once" | "skip" | "all";
        after?: Duration;
        cap?: number;
        perSecond?: number;
        waiting?: boolean;
        within?: Duration | null;
      };
  /** What happens to a run whose worker died: another try (at least once), a failure (at most once), or an operator decides. Default "retry". */
  onWorkerLost?: "retry" | "fail" | "ask";
  /** With `onWorkerLost: "retry"`: the number of lost workers after which a run counts as the cause of the losses, and fails. Default 3. */
  workerLosses?: number;
  /** The task is paused when this number of its runs have failed without a success between them. */
  pauseAfter?: number | null;
  /** What happens to the task when its schedule has no slot left and none of its runs waits or runs. Default "keep". */
  atEnd?: "keep" | "alarm" | "remove";
  /** How long a claim outlives its worker's session, in case the worker comes back. Default "1s". */
  grace?: Duration;
  /** Which ended runs are kept; with `failures`, successful runs are only counted. Default "all". */
  history?: "all" | "failures";
  /** Whether an enqueue waits until its run is on the store's disk; with `relaxed`, a crash of the server may lose the last ones. Default "full". */
  durability?: "full" | "relaxed";
  /** A program that runs instead of a handler, on a worker whose own configuration allows it. */
  command?: CommandSpec;
  /** A URL that is called instead of a handler, by a worker whose own configuration allows it. */
  http?: HttpOptions;
  /** The days on which it runs, by a stored calendar. */
  calendar?: SlotRuleOptions["calendar"];
  /** Times in which its slots do not start. */
  blackout?: SlotRuleOptions["blackout"];
  /** With `release`, the tries of a run stay on the release of the worker that began it, and so do its children whose tasks have `pin`. */
  pin?: "release" | null;
  /** With `pin`: what happens to a run when no worker of its release has been alive for the `releaseGrace`. Default "any". */
  onReleaseGone?: "any" | "wait" | "fail";
  /** Which worker of its group gets a run: the first free one, a chosen one, or each of them. Default "any". */
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
  /** Only workers that have all of these labels run it; can be combined with every `route`. */
  labels?: Record<string, string>;
  /** Labels that all its runs have, those of its slots too: lists of runs can be narrowed to them. */
  runLabels?: Record<string, string>;
  /** The number of runs under way at once, of one key and on one worker, in addition to `overlap`. */
  limit?: { perKey?: number; perWorker?: number };
  /** How many tries begin in any span of a length; with `key`, counted for each key. */
  rate?: { limit: number; per: Duration; key?: boolean } | null;
  /** Its runs begin when runs of these tasks have ended; with several tasks, once each of them has such a run of the same slot. */
  after?: AfterOption | null;
  /** Makes this a schedule of that task, called TASK:NAME: it has a schedule and a payload of its own, and handler and other options are the task's. */
  of?: string | null;
}

interface Row<Part extends TaskPart> {
  /** The name of the part in a definition. */
  part: Part;
  kind: Kind;
  /** The default in the form of a given value; null if there is none. */
  usual: unknown;
  /**
   * True if a definition leaves the part out when it has its default, so that the texts of definitions from before the option do not
   * change. Every new row must have this.
   */
  isAbsent?: true;
  /** True if null removes the option in code, in a file and in the HTTP API; on the command line, `none` removes it. */
  nullable?: true;
  /** The values that `tasks edit --set` accepts, if the shape does not tell. */
  words?: string;
  /** What the option means, in one sentence. */
  description: string;
  /** The first version of Carillon that has the option. */
  since: string;
  /** True if the option of an existing task can be edited. After an edit, runs that are not claimed are planned again. */
  editable: boolean;
  /** An example in the form of a file. */
  example: Json;
}

export type OptionName = keyof TaskOptions;
export type OptionRow = Row<TaskPart>;

export const taskOptions = {
  description: {
    part: "description",
    kind: text(10_000),
    usual: "",
    description: "What the task is for.",
    since: "0.1.0",
    editable: true,
    example: "Settles the day's payments.",
  },
  group: {
    part: "group",
    kind: name(limits.groupNameLength),
    usual: "default",
    description: "The workers that can run it: those that serve this group.",
    since: "0.1.0",
    editable: true,
    example: "reports",
  },
  owner: ownerRow,
  schedule: {
    part: "schedule",
    kind: scheduleKind,
    usual: { type: "manual" },
    words: "a cron, every 5m, at TIME, manual",
    description: "When its runs are due: a cron in a zone, an interval, one moment, or only by hand.",
    since: "0.1.0",
    editable: true,
    example: { cron: "0 2 * * *", zone: "Europe/Berlin" },
  },
  slotPayload: {
    part: "slotPayload",
    kind: json,
    usual: null,
    description: "The payload of the runs that its schedule makes.",
    since: "0.1.0",
    editable: true,
    example: { ledger: "eu" },
  },
  payloadSchema: {
    part: "payloadSchema",
    kind: payloadSchemaKind,
    usual: null,
    isAbsent: true,
    nullable: true,
    description: "JSON Schema of its payloads; default: the schema in code as JSON Schema, if it can be written so.",
    since: "0.1.0",
    editable: true,
    example: { type: "object", required: ["ledger"] },
  },
  priority: {
    part: "priority",
    kind: count(0, 9),
    usual: 5,
    description: "Due runs of a higher priority are claimed first.",
    since: "0.1.0",
    editable: true,
    example: 9,
  },
  timeout: {
    part: "timeoutMs",
    kind: duration(),
    usual: null,
    nullable: true,
    description: "The time after which an attempt is stopped.",
    since: "0.1.0",
    editable: true,
    example: "1h",
  },
  retry: {
    part: "retry",
    kind: retryKind,
    usual: 1,
    description: "The number of tries, the first included, or the whole policy of tries and pauses.",
    since: "0.1.0",
    editable: true,
    example: { attempts: 5, delay: "2s" },
  },
  overlap: {
    part: "overlap",
    kind: overlapKind,
    usual: "allow",
    description: "What happens to a run that is due while another run of the task is under way.",
    since: "0.1.0",
    editable: true,
    example: "queue",
  },
  misfire: {
    part: "misfire",
    kind: misfireKind,
    usual: "fire_once",
    description: "What happens to slots that could not be planned or started in time.",
    since: "0.1.0",
    editable: true,
    example: { policy: "all", cap: 10 },
  },
  onWorkerLost: {
    part: "onWorkerLost",
    kind: choice(["retry", "fail", "ask"]),
    usual: "retry",
    description:
      "What happens to a run whose worker died: another try (at least once), a failure (at most once), or an operator decides.",
    since: "0.1.0",
    editable: true,
    example: "fail",
  },
  workerLosses: {
    part: "workerLosses",
    kind: count(1, 1_000),
    usual: 3,
    isAbsent: true,
    description:
      'With `onWorkerLost: "retry"`: the number of lost workers after which a run counts as the cause of the losses, and fails.',
    since: "0.1.0",
    editable: true,
    example: 5,
  },
  pauseAfter: {
    part: "pauseAfter",
    kind: count(1, 1_000),
    usual: null,
    isAbsent: true,
    nullable: true,
    description: "The task is paused when this number of its runs have failed without a success between them.",
    since: "0.1.0",
    editable: true,
    example: 3,
  },
  atEnd: {
    part: "atEnd",
    kind: choice(["keep", "alarm", "remove"]),
    usual: "keep",
    isAbsent: true,
    description: "What happens to the task when its schedule has no slot left and none of its runs waits or runs.",
    since: "0.1.0",
    editable: true,
    example: "remove",
  },
  grace: {
    part: "graceMs",
    kind: duration({ leastMs: 0 }),
    usual: 1_000,
    description: "How long a claim outlives its worker's session, in case the worker comes back.",
    since: "0.1.0",
    editable: true,
    example: "5s",
  },
  history: historyRow,
  durability: durabilityRow,
  command: {
    part: "command",
    kind: commandKind,
    usual: null,
    description: "A program that runs instead of a handler, on a worker whose own configuration allows it.",
    since: "0.1.0",
    editable: true,
    example: { argv: ["/usr/bin/rsync", "-a", "/srv/", "backup:/srv/"] },
  },
  http: {
    part: "http",
    kind: httpKind,
    usual: null,
    isAbsent: true,
    description: "A URL that is called instead of a handler, by a worker whose own configuration allows it.",
    since: "0.1.0",
    editable: true,
    example: { url: "https://billing.example/close", timeout: "10s" },
  },
  calendar: {
    part: "calendar",
    kind: calendarKind,
    usual: null,
    isAbsent: true,
    nullable: true,
    description: "The days on which it runs, by a stored calendar.",
    since: "0.1.0",
    editable: true,
    example: { name: "de", otherwise: "next" },
  },
  blackout: {
    part: "blackout",
    kind: blackoutKind,
    usual: [],
    isAbsent: true,
    nullable: true,
    description: "Times in which its slots do not start.",
    since: "0.1.0",
    editable: true,
    example: [{ from: "22:00", to: "06:00", zone: "Europe/Berlin" }],
  },
  route: {
    part: "route",
    kind: routeKind,
    usual: "any",
    isAbsent: true,
    words: "random, sticky and the like, or JSON",
    description: "Which worker of its group gets a run: the first free one, a chosen one, or each of them.",
    since: "0.1.0",
    editable: true,
    example: { pin: "atlas" },
  },
  pin: {
    part: "pin",
    kind: choice(["release"]),
    usual: null,
    isAbsent: true,
    nullable: true,
    description:
      "With `release`, the tries of a run stay on the release of the worker that began it, and so do its children whose tasks have `pin`.",
    since: "0.1.0",
    editable: true,
    example: "release",
  },
  onReleaseGone: {
    part: "onReleaseGone",
    kind: choice(["any", "wait", "fail"]),
    usual: "any",
    isAbsent: true,
    description:
      "With `pin`: what happens to a run when no worker of its release has been alive for the `releaseGrace`.",
    since: "0.1.0",
    editable: true,
    example: "fail",
  },
  labels: {
    part: "labels",
    kind: labelsKind,
    usual: {},
    isAbsent: true,
    description: "Only workers that have all of these labels run it; can be combined with every `route`.",
    since: "0.1.0",
    editable: true,
    example: { gpu: "a100" },
  },
  runLabels: runLabelsRow,
  limit: {
    part: "limit",
    kind: limitKind,
    usual: {},
    isAbsent: true,
    description: "The number of runs under way at once, of one key and on one worker, in addition to `overlap`.",
    since: "0.1.0",
    editable: true,
    example: { perKey: 2 },
  },
  rate: {
    part: "rate",
    kind: rateKind,
    usual: null,
    isAbsent: true,
    nullable: true,
    description: "How many tries begin in any span of a length; with `key`, counted for each key.",
    since: "0.1.0",
    editable: true,
    example: { limit: 100, per: "1m" },
  },
  after: {
    part: "after",
    kind: afterKind,
    usual: null,
    isAbsent: true,
    nullable: true,
    words: "TASK,TASK…, JSON with on, or none",
    description:
      "Its runs begin when runs of these tasks have ended; with several tasks, once each of them has such a run of the same slot.",
    since: "0.1.0",
    editable: true,
    example: { tasks: ["fetch", "parse"], on: "any" },
  },
  of: {
    part: "of",
    kind: name(limits.taskNameLength),
    usual: null,
    isAbsent: true,
    nullable: true,
    description:
      "Makes this a schedule of that task, called TASK:NAME: it has a schedule and a payload of its own, and handler and other options are the task's.",
    since: "0.1.0",
    editable: false,
    example: "digest",
  },
} as const satisfies { [Name in OptionName]-?: Row<TaskPart> };

/** The parts that no row names. There must be none; the next line fails to compile otherwise. */
type PartsWithoutRow = Exclude<TaskPart, (typeof taskOptions)[OptionName]["part"]>;
true satisfies [PartsWithoutRow] extends [never] ? true : PartsWithoutRow;

export const optionNames = Object.keys(taskOptions) as OptionName[];
export const optionRows = Object.entries(taskOptions) as [OptionName, OptionRow][];

const rowOf = new Map<string, OptionRow>(Object.entries(taskOptions));
export const optionRow = (option: string): OptionRow | undefined => rowOf.get(option);

/** Returns true if the option accepts null: either null removes it, or its value is JSON. */
export const takesNull = ({ nullable, kind }: OptionRow): boolean => nullable === true || kind.shape.is === "json";

/** Parts that a definition may leave out. JSON has no undefined, so an edit stores null for such a part. */
export const absentParts: ReadonlySet<TaskPart> = new Set(
  optionRows.filter(([, { isAbsent }]) => isAbsent).map(([, { part }]) => part),
);

/** Returns the default in the form of a file; null if there is none. */
export const usualWritten = ({ usual, kind }: OptionRow): Json =>
  usual === null ? null : kind.write(kind.read(usual, { task: undefined, path: "" }));
