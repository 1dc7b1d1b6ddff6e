import type { Json } from "../base/json.ts";
import type { Ends } from "../task/after.ts";
import type { Enqueued } from "./run-record.ts";

/** A run that ended, as those that come after it or join it see it. */
export interface RunInput {
  runId: number;
  task: string;
  /** Of a child: the key under which it was spawned. */
  key: string | null;
  slotMs: number | null;
  outcome: "succeeded" | "failed" | "cancelled" | "skipped";
  result: Json;
  error: Json;
}

export interface ChildWrite {
  taskId: number;
  payload: string | null;
  /** One child of its parent has it, whatever attempt of the parent asks, and however often. */
  key: string;
}

/** What a run's success begins, in the write that ends it. Tasks are given by number, payloads and states as JSON. */
export type Onward =
  /** One run of this task once every child of the run has ended. */
  | { kind: "join"; taskId: number; payload: string | null }
  /** The next run of the chain, of the same task. */
  | { kind: "continue"; payload: string | null; state: string | null };

/** Returned by a handler: its run succeeds, and something follows. Made by `run.fanOut` and `run.continueAs`. */
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
  /** Which ends of the other's runs it wants. */
  on: Ends;
  /** The other tasks that it waits for besides. */
  with: string[];
}

export interface LateResult {
  fence: number;
  node: string | null;
  outcome: "succeeded" | "failed";
  atMs: number;
  error: Json;
}

/** A claim by which a handler asks. */
export interface AskingRun {
  runId: number;
  fence: number;
}

/** What a handler's run asks for: of the store, or where its worker has none, of a server. */
export interface RunFlow {
  /** @throws TASK_UNKNOWN */
  taskId(name: string, asking: AskingRun): Promise<number>;
  /**
   * Makes runs that have `parent` as their parent, under its claim. Repeatable: a child that is there, ended or not, is
   * found by its key. @throws FENCE_STALE when the claim is no longer this one, TASK_UNKNOWN, OPTION_INVALID when there
   * would be more than limits.children of them
   */
  spawn(parent: AskingRun, children: ChildWrite[], nowMs: number): Promise<Enqueued[]>;
  /** Keeps a claimed run's state until the run ends; null forgets it. Repeatable. @returns whether the claim still stood */
  saveState(runId: number, fence: number, state: string | null): Promise<boolean>;
  /**
   * What a run comes from: the children that it joins, the runs it comes after, or the run it goes on from.
   * @throws FENCE_STALE
   */
  inputs(asking: AskingRun): Promise<RunInput[]>;
}

/** Of what a run comes from: what has a higher number than this, so many, and so many bytes of results; one at least. */
export interface InputsPage {
  afterRunId: number;
  limit: number;
  bytes: number;
}

/** The port for runs that come from runs, and for what an operator decides. */
export interface FlowStore extends RunFlow {
  taskId(name: string): Promise<number>;
  /** In the order of their numbers. @param of without a fence: for whoever looks */
  inputs(of: { runId: number; fence?: number }): Promise<RunInput[]>;
  inputsPage(of: AskingRun, page: InputsPage): Promise<{ inputs: RunInput[]; more: boolean }>;
  /** Makes the joining run of each of these parents whose children have all ended, and that has a join. Repeatable. */
  join(parentIds: number[], nowMs: number): Promise<void>;
  /** Decides what is undecided. @throws RUN_UNKNOWN, RUN_STATE */
  decide(runId: number, how: "retry" | "fail", why: string, nowMs: number, by: string): Promise<void>;
  /** Where a run comes from and what came of it; of its children the first so many. */
  relatives(runId: number, limit: number): Promise<Relative[]>;
  /** The tasks that come after this one, by name. */
  followers(taskId: number): Promise<Follower[]>;
  /** Verdicts on it that came too late. */
  lateResults(runId: number): Promise<LateResult[]>;
}
