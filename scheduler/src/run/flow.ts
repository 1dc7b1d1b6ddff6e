import type { Json } from "../base/json.ts";
import type { Ends } from "../task/after.ts";
import type { Enqueued } from "./run-record.ts";

/** A run that ended, as seen by the runs that come after it or join it. */
export interface RunInput {
  runId: number;
  task: string;
  /** The key under which a child was spawned. */
  key: string | null;
  slotMs: number | null;
  outcome: "succeeded" | "failed" | "cancelled" | "skipped";
  result: Json;
  error: Json;
}

export interface ChildWrite {
  taskId: number;
  payload: string | null;
  /** Unique among its parent's children: any attempt of the parent that spawns this key again finds the same child. */
  key: string;
}

/** The run that a run's success begins, in the write that ends it. Tasks are given by number, payloads and states as JSON. */
export type Onward =
  /** One run of this task, once every child of the run has ended. */
  | { kind: "join"; taskId: number; payload: string | null }
  /** The next run of the chain, of the same task. */
  | { kind: "continue"; payload: string | null; state: string | null };

/** Returned by a handler: its run succeeds, and another run follows. Made by `run.fanOut` and `run.continueAs`. */
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

/** A task that comes after another. */
export interface Follower {
  task: string;
  /** The outcomes of the other task's runs that start it. */
  on: Ends;
  /** The other tasks that it waits for as well. */
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

/** Requests of a handler's run: to the store, or to a server if its worker has no store. */
export interface RunFlow {
  /** @throws TASK_UNKNOWN */
  taskId(name: string, asking: AskingRun): Promise<number>;
  /**
   * Makes runs that have `parent` as their parent, under its claim. Repeatable: an existing child, ended or not, is found by its key.
   * @throws FENCE_STALE when the claim is no longer valid, TASK_UNKNOWN, OPTION_INVALID when there would be more than limits.children of
   * them
   */
  spawn(parent: AskingRun, children: ChildWrite[], nowMs: number): Promise<Enqueued[]>;
  /** Keeps a claimed run's state until the run ends; null deletes it. Repeatable. @returns whether the claim was still valid */
  saveState(runId: number, fence: number, state: string | null): Promise<boolean>;
  /**
   * The runs that a run comes from: the children that it joins, the runs it comes after, or the run it goes on from.
   * @throws FENCE_STALE
   */
  inputs(asking: AskingRun): Promise<RunInput[]>;
}

/** A page of a run's inputs: those with a number above `afterRunId`, at most `limit` and `bytes` bytes of results, at least one. */
export interface InputsPage {
  afterRunId: number;
  limit: number;
  bytes: number;
}

/** The port for runs that come from runs, and for decisions of an operator. */
export interface FlowStore extends RunFlow {
  taskId(name: string): Promise<number>;
  /** In the order of their numbers. @param of without a fence: for a reader that has no claim */
  inputs(of: { runId: number; fence?: number }): Promise<RunInput[]>;
  inputsPage(of: AskingRun, page: InputsPage): Promise<{ inputs: RunInput[]; more: boolean }>;
  /** Makes the joining run of each of these parents that has a join and whose children have all ended. Repeatable. */
  join(parentIds: number[], nowMs: number): Promise<void>;
  /** Decides an undecided run. @throws RUN_UNKNOWN, RUN_STATE */
  decide(runId: number, how: "retry" | "fail", why: string, nowMs: number, by: string): Promise<void>;
  /** The runs that a run comes from and those that came from it; at most `limit` of its children. */
  relatives(runId: number, limit: number): Promise<Relative[]>;
  /** The tasks that come after this one, by name. */
  followers(taskId: number): Promise<Follower[]>;
  /** Verdicts on the run that came too late. */
  lateResults(runId: number): Promise<LateResult[]>;
}
