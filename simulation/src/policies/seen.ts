import type { DeadLetter } from "../../../scheduler/src/run/dead-letters.ts";
import type { RunRecord } from "../../../scheduler/src/run/run-record.ts";
import type { SlotRange, SlotRecord } from "../../../scheduler/src/slots/history-store.ts";
import type { Counters } from "../../../scheduler/src/task/task-record.ts";
import type { Act, Behaviour, Scenario, TaskPlan } from "./scenario.ts";

/** One act, with the times of its call and its answer: in ms from the scenario's beginning, by its own time. */
export interface Done {
  readonly act: Act;
  readonly fromMs: number;
  readonly toMs: number;
  /** The run that the act made or concerned. */
  readonly runId?: number;
  /** For an enqueue and a rerun. */
  readonly created?: boolean;
  /** For an enqueue: the run that it replaced. */
  readonly replaced?: number;
  /** For an enqueue: true if the new run follows the end of the run that has the key. */
  readonly again?: boolean;
  /** For a cancel. */
  readonly outcome?: "cancelled" | "stopping";
  /** For a loss: the runs that the worker had claimed. */
  readonly lost?: readonly number[];
  /** The error code if the act was refused. */
  readonly refused?: string;
}

/** One try, as its handler recorded it. */
export interface Try {
  readonly runId: number;
  readonly task: number;
  readonly attempt: number;
  readonly fence: number;
  readonly does: Behaviour;
  readonly fromMs: number;
  /** The position among all starts and ends of tries, because many happen at the same time. */
  readonly began: number;
  /** When its signal aborted it, and the code. */
  abort?: { readonly atMs: number; readonly code: string };
  /** When its worker was declared dead. */
  lostMs?: number;
  /** Set if the try began after its worker was declared dead. */
  readonly afterLoss?: true;
  /** When and how it ended; killed: with its process. */
  end?: { readonly atMs: number; readonly ended: number; readonly how: "returned" | "threw" | "killed" };
}

/** A task's definition, stored between these times. */
export interface PlanSeen {
  readonly fromMs: number;
  readonly atMs: number;
  readonly version: number;
  readonly plan: TaskPlan;
}

/**
 * How exact the times of a scenario are. On a test tower's time an act's consequences take no time, and all share one clock. Processes
 * take time, and read clocks of their own.
 */
export interface Pace {
  /** Two readings of the time may differ by this much, in ms. */
  readonly slackMs: number;
  /** A consequence may take this long, in ms. */
  readonly reactMs: number;
}

/** A task at the end. */
export interface TaskSeen {
  readonly counters: Counters;
  readonly slots: readonly SlotRecord[];
  readonly ranges: readonly SlotRange[];
  /** The definitions: the first one, then those after edits. */
  readonly plans: readonly PlanSeen[];
}

export interface RunSeen extends RunRecord {
  /** The index of its task. */
  readonly of: number;
  readonly letter: DeadLetter | null;
  /** The ended run from which it was made. */
  readonly redrives: number | null;
}

/** The live runs at a moment between two acts, read by one statement. */
export interface Look {
  readonly atMs: number;
  readonly live: readonly Pick<RunRecord, "runId" | "task" | "state" | "key" | "attempt" | "dueMs">[];
}

/** All that a user can see of a scenario. Times of records are by the same time, from the scenario's beginning. */
export interface Seen {
  readonly scenario: Scenario;
  /** The beginning of its time: epoch ms. */
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
