import type { DeadLetter } from "../../../scheduler/src/run/dead-letters.ts";
import type { RunRecord } from "../../../scheduler/src/run/run-record.ts";
import type { SlotRange, SlotRecord } from "../../../scheduler/src/slots/history-store.ts";
import type { Counters } from "../../../scheduler/src/task/task-record.ts";
import type { Act, Behaviour, Scenario, TaskPlan } from "./scenario.ts";

/** An executed act, with the times of its call and its answer, in ms from the scenario's beginning. */
export interface Done {
  readonly act: Act;
  readonly fromMs: number;
  readonly toMs: number;
  /** The run that the act created, returned or changed. */
  readonly runId?: number;
  /** For an enqueue or a rerun: true if the act created a run, false if it returned an existing one. */
  readonly created?: boolean;
  /** For an enqueue: the run that it replaced. */
  readonly replaced?: number;
  /** For an enqueue: true if the new run follows the end of the run that has the key. */
  readonly again?: boolean;
  /** For a cancel: `cancelled` if the run ended at once, `stopping` if its handler was still running. */
  readonly outcome?: "cancelled" | "stopping";
  /** For a loss: the runs that the worker had claimed. */
  readonly lost?: readonly number[];
  /** The error code if the act was refused. */
  readonly refused?: string;
}

/** One attempt, as its handler recorded it. Times are ms from the scenario's beginning. */
export interface Try {
  readonly runId: number;
  readonly task: number;
  readonly attempt: number;
  readonly fence: number;
  readonly does: Behaviour;
  readonly fromMs: number;
  /** Sequence number among all starts and ends of attempts, because many of them happen at the same time. */
  readonly began: number;
  /** When the attempt's signal was aborted, and the error code of the reason. */
  abort?: { readonly atMs: number; readonly code: string };
  /** When the attempt's worker was declared dead. */
  lostMs?: number;
  /** Set if the attempt began after its worker was declared dead. */
  readonly afterLoss?: true;
  /** When and how the attempt ended (`killed`: with its process); `ended` is a sequence number like `began`. */
  end?: { readonly atMs: number; readonly ended: number; readonly how: "returned" | "threw" | "killed" };
}

/** A version of a task's definition. The call that saved it began at `fromMs` and returned at `atMs`. */
export interface PlanSeen {
  readonly fromMs: number;
  readonly atMs: number;
  readonly version: number;
  readonly plan: TaskPlan;
}

/**
 * Tolerances for the times of a scenario. On a test tower's simulated time both are 0, because consequences take no time and
 * there is only one clock. Real processes take time and read their own clocks.
 */
export interface Pace {
  /** The largest difference in ms between two readings of the same time. */
  readonly slackMs: number;
  /** The longest time in ms that a consequence may take. */
  readonly reactMs: number;
}

/** What the store contains about a task at the end of the scenario. */
export interface TaskSeen {
  readonly counters: Counters;
  readonly slots: readonly SlotRecord[];
  readonly ranges: readonly SlotRange[];
  /** The task's definitions in order: the first one, then one per edit. */
  readonly plans: readonly PlanSeen[];
}

export interface RunSeen extends RunRecord {
  /** The index of the run's task in the scenario. */
  readonly of: number;
  readonly letter: DeadLetter | null;
  /** The ended run that this run repeats; null if it repeats none. */
  readonly redrives: number | null;
}

/** The unfinished runs at a moment between two acts, read by one statement. */
export interface Look {
  readonly atMs: number;
  readonly live: readonly Pick<RunRecord, "runId" | "task" | "state" | "key" | "attempt" | "dueMs">[];
}

/** Everything that a user can observe of a scenario. All times but `beganMs` are ms from the scenario's beginning. */
export interface Seen {
  readonly scenario: Scenario;
  /** The scenario's beginning, epoch ms. */
  readonly beganMs: number;
  readonly pace: Pace;
  readonly done: readonly Done[];
  readonly looks: readonly Look[];
  readonly tries: readonly Try[];
  readonly tasks: readonly TaskSeen[];
  readonly runs: readonly RunSeen[];
  /** From this time on all tasks are resumed and no group is limited. */
  readonly healedMs: number;
  readonly endMs: number;
  /** Warnings and errors of the log, for debugging; no rule reads them. */
  readonly told: readonly string[];
}
