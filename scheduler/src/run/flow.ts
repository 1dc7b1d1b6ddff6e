import type { Json } from "../base/json.ts";
import type { Ends } from "../task/after.ts";
import type { Enqueued, RunRecord } from "./run-record.ts";

/** An ended run, as it is shown to the run that follows it, joins it or continues it. */
export interface RunInput {
  runId: number;
  task: string;
  /** The key under which a parent run spawned this run; null if it has none. */
  key: string | null;
  slotMs: number | null;
  outcome: "succeeded" | "failed" | "cancelled" | "skipped";
  result: Json;
  error: Json;
}

export interface ChildWrite {
  taskId: number;
  payload: string | null;
  /**
   * Unique among the parent's children of this task. If a later attempt of the parent spawns the same key, it gets the same child.
   */
  key: string;
}

/**
 * The run that follows a run's success. The transaction that ends the first run creates it, or records the join that creates it later.
 * `payload` and `state` are JSON texts.
 */
export type Onward =
  /** One run of this task, created once every child of the ended run has ended. */
  | { kind: "join"; taskId: number; payload: string | null }
  /** The next run in a chain of runs of the same task. */
  | { kind: "continue"; payload: string | null; state: string | null };

/** A return value of a handler: its run succeeds, and another run follows. `run.fanOut` and `run.continueAs` create it. */
export class Continuation {
  readonly onward: Onward;

  constructor(onward: Onward) {
    this.onward = onward;
  }
}

export interface Relative {
  runId: number;
  task: string;
  state: string;
  relation: "parent" | "input" | "child" | "after" | "join" | "chain";
}

/** Runs without their large parts, each with the runs that it comes from. `more`: there are more than these. */
export interface RunFamily {
  runs: { run: RunRecord; parentId: number | null; inputs: number[] }[];
  more: boolean;
}

/** A task that is configured to run after another task's runs. */
export interface Follower {
  task: string;
  /** The outcomes of the other task's run after which a run of this task is created. */
  on: Ends;
  /** Further tasks whose runs this task waits for. */
  with: string[];
}

export interface LateResult {
  fence: number;
  node: string | null;
  outcome: "succeeded" | "failed";
  atMs: number;
  error: Json;
}

/** The claim in whose name a handler sends a request. */
export interface AskingRun {
  runId: number;
  fence: number;
}

/** The requests that a handler can make for its run. They go to the store, or to a server if the worker has no store. */
export interface RunFlow {
  /** @throws TASK_UNKNOWN */
  taskId(name: string, asking: AskingRun): Promise<number>;
  /**
   * Creates runs as children of the run `parent`, if its claim is valid. Can be repeated: an existing child, even one that has ended, is
   * found by its key.
   * @throws FENCE_STALE if the claim is not valid any more, TASK_UNKNOWN, OPTION_INVALID if the parent would have more than limits.children
   * children
   */
  spawn(parent: AskingRun, children: ChildWrite[], nowMs: number): Promise<Enqueued[]>;
  /**
   * Stores the state of a claimed run until the run ends; null deletes the state. Can be repeated.
   * @returns true if the claim was still valid
   */
  saveState(runId: number, fence: number, state: string | null): Promise<boolean>;
  /**
   * Returns the runs that led to this run: the children that it joins, the runs that it follows, or the run that it continues.
   * @throws FENCE_STALE
   */
  inputs(asking: AskingRun): Promise<RunInput[]>;
}

/**
 * Selects a page of a run's inputs: those with an id above `afterRunId`, at most `limit` inputs and at most `bytes` bytes of
 * results. A page has at least one input, even if its result is larger.
 */
export interface InputsPage {
  afterRunId: number;
  limit: number;
  bytes: number;
}

/** Store operations for runs that other runs create, and for an operator's decisions about undecided runs. */
export interface FlowStore extends RunFlow {
  taskId(name: string): Promise<number>;
  /** Returns the inputs ordered by run id. @param of without a `fence`, the claim is not checked, for a reader that has no claim */
  inputs(of: { runId: number; fence?: number }): Promise<RunInput[]>;
  inputsPage(of: AskingRun, page: InputsPage): Promise<{ inputs: RunInput[]; more: boolean }>;
  /** Creates the joining run of each of these parents that has a join and whose children have all ended. Can be repeated. */
  join(parentIds: number[], nowMs: number): Promise<void>;
  /** Decides that an undecided run is retried or fails. @throws RUN_UNKNOWN, RUN_STATE */
  decide(runId: number, how: "retry" | "fail", why: string, nowMs: number, by: string): Promise<void>;
  /** Returns the runs that led to a run and the runs that it created, at most `limit` together, lowest ids first. */
  relatives(runId: number, limit: number): Promise<Relative[]>;
  /** Returns the tasks that run after this one, by name. */
  followers(taskId: number): Promise<Follower[]>;
  /**
   * Returns the names of at most `limit` tasks that follow others or are followed: all such tasks, or the task `taskId` and those that are
   * connected with it over any number of steps. `namespaces`: only tasks in these; null: all.
   */
  connected(which: { taskId: number | null; namespaces: readonly string[] | null; limit: number }): Promise<string[]>;
  /** Returns a run and the runs that it is connected with, by number, at most `limit`; no runs if it does not exist. */
  family(runId: number, limit: number): Promise<RunFamily>;
  /** Returns the verdicts on the run that arrived after its claim had ended. */
  lateResults(runId: number): Promise<LateResult[]>;
}
