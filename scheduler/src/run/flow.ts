import type { Json } from "../base/json.ts";
import type { Ends } from "../task/after.ts";
import type { Enqueued } from "./run-record.ts";

/** A run that ended, as seen by the runs that come after it or join it. */
export interface RunInput {
  runId: number;
  task: string;
  /** The key under which the run was spawned as a child; null: it has none. */
  key: string | null;
  slotMs: number | null;
  outcome: "succeeded" | "failed" | "cancelled" | "skipped";
  result: Json;
  error: Json;
}

export interface ChildWrite {
  taskId: number;
  payload: string | null;
  /** Unique among its parent's children: an attempt of the parent that spawns this key again gets the same child. */
  key: string;
}

/**
 * The run that begins after a run's success, made by the write that ends that run. The task is given by number, payload and state as JSON.
 */
export type Onward =
  /** One run of this task, once every child of the run has ended. */
  | { kind: "join"; taskId: number; payload: string | null }
  /** The next run of the chain, of the same task. */
  | { kind: "continue"; payload: string | null; state: string | null };

/** Returned by a handler: its run succeeds, and another run follows. Created by `run.fanOut` and `run.continueAs`. */
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

/** A task whose runs start after another task's runs. */
export interface Follower {
  task: string;
  /** The outcomes of the other task's runs that start it. */
  on: Ends;
  /** The other tasks that this task waits for as well. */
  with: string[];
}

export interface LateResult {
  fence: number;
  node: string | null;
  outcome: "succeeded" | "failed";
  atMs: number;
  error: Json;
}

/** The claim under which a handler sends a request. */
export interface AskingRun {
  runId: number;
  fence: number;
}

/** The requests that a handler can make for its run: to the store, or to a server if its worker has no store. */
export interface RunFlow {
  /** @throws TASK_UNKNOWN */
  taskId(name: string, asking: AskingRun): Promise<number>;
  /**
   * Makes runs with `parent` as their parent, under the parent's claim. Repeatable: an existing child, ended or not, is found by its key.
   * @throws FENCE_STALE when the claim is no longer valid, TASK_UNKNOWN, OPTION_INVALID when the parent would have more than
   * limits.children
   */
  spawn(parent: AskingRun, children: ChildWrite[], nowMs: number): Promise<Enqueued[]>;
  /**
   * Stores a claimed run's state, which is kept until the run ends; null deletes the state. Repeatable. @returns whether the claim was
   * still valid
   */
  saveState(runId: number, fence: number, state: string | null): Promise<boolean>;
  /**
   * Returns the runs that a run comes from: the children that it joins, the runs that it follows, or the run that it continues.
   * @throws FENCE_STALE
   */
  inputs(asking: AskingRun): Promise<RunInput[]>;
}

/**
 * A page of a run's inputs: those with a number above `afterRunId`; at least one, at most `limit`, and at most `bytes` bytes of results.
 */
export interface InputsPage {
  afterRunId: number;
  limit: number;
  bytes: number;
}

/** The port for runs that other runs begin, and for the decisions of an operator. */
export interface FlowStore extends RunFlow {
  taskId(name: string): Promise<number>;
  /** Returns the inputs in the order of their run numbers. @param of without a fence: for a reader that has no claim */
  inputs(of: { runId: number; fence?: number }): Promise<RunInput[]>;
  inputsPage(of: AskingRun, page: InputsPage): Promise<{ inputs: RunInput[]; more: boolean }>;
  /** For each of these parents with a join whose children have all ended, makes the joining run. Repeatable. */
  join(parentIds: number[], nowMs: number): Promise<void>;
  /** Decides an undecided run. @throws RUN_UNKNOWN, RUN_STATE */
  decide(runId: number, how: "retry" | "fail", why: string, nowMs: number, by: string): Promise<void>;
  /** The runs that a run comes from, and the runs that it began; at most `limit` of its children. */
  relatives(runId: number, limit: number): Promise<Relative[]>;
  /** The tasks that come after this one, by name. */
  followers(taskId: number): Promise<Follower[]>;
  /** Verdicts on the run that arrived too late. */
  lateResults(runId: number): Promise<LateResult[]>;
}
