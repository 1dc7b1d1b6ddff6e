import type { OperationFilter, OperationKind } from "../../../scheduler/src/run/operations.ts";
import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Cut, Weather } from "../world/network.ts";

/** An operation on many runs or tasks. Times are relative to the moment of the request. */
export interface Asked {
  readonly kind: OperationKind;
  readonly filter: OperationFilter;
  /** For runs: excludes runs that became due, or ended, before this many ms ago. */
  readonly sinceAgoMs: number | null;
  /** For a backfill. */
  readonly range: {
    readonly fromAgoMs: number;
    readonly toAgoMs: number;
    readonly perSecond: number | null;
    readonly reverse: boolean;
    readonly missed: boolean;
  } | null;
  /** True if the caller sends the request twice at once, with one token, as if the first reply had been lost. */
  readonly twice: boolean;
  /** True if the caller carries out the operation as well, concurrently with the leader. */
  readonly waits: boolean;
}

/** One event for the cluster, at a time of the universe. A seed determines a list of these events and all later random numbers. */
export type Act =
  | { kind: "crash"; node: string; forMs: number }
  | { kind: "restart"; node: string; forMs: number }
  | { kind: "pause"; node: string; forMs: number }
  | { kind: "cut"; node: string; service: "store" | "coordination"; way: Cut; forMs: number }
  /**
   * The same for the next node that does `at`: it begins a run of some length (struck in the midst of it), claims a run before its time
   * (between the two), gets a lock (while it has it), steps an operation (in the midst of the step), has a lock and beats (while the answer
   * is on its way), or sees no change of a grace lock (so that the answer arrives when the holder's timeout is over by the node's clock).
   * `edited`: meanwhile its task loses its grace. With an `aim` it waits for a run that can show the bug (strikes.ts):
   * - `taken back`: the node's line to the store comes back once its session was ended, while the worker still grants the run its grace;
   * - `shown again`: the node stands still until its session was ended; the coordination service shows it again, and the store
   *   cannot answer;
   * - `word ends`: the coordination service cannot answer a node that does not lead, for longer than its last answer counts.
   */
  | {
      kind: "strike";
      how: "crash" | "pause" | "cut";
      at: "run" | "claim" | "hold" | "step" | "beat" | "look";
      edited: boolean;
      aim?: "taken back" | "shown again" | "word ends";
      way: Cut;
      forMs: number;
    }
  | { kind: "weather"; weather: Weather; forMs: number }
  /** All processes stand still, as if their common machine did. */
  | { kind: "standstill"; forMs: number }
  | { kind: "store down"; forMs: number }
  /** The standby that will replace the store next stops replicating at the store's present state. */
  | { kind: "standby falls behind" }
  /**
   * The primary dies, and after `forMs` the outdated standby becomes the store; its sequences are ahead by `numbersAhead`, because
   * the log writes them ahead.
   */
  | { kind: "store goes back"; forMs: number; numbersAhead: number }
  /** The store's disk stands still: reads are answered, but no commit. */
  | { kind: "store stalls"; forMs: number }
  | { kind: "coordination down"; forMs: number; wiped: boolean }
  | { kind: "wall"; node: string; stepMs: number }
  | { kind: "store clock"; stepMs: number }
  | { kind: "save"; node: string; task: string; definition: TaskDefinition }
  | { kind: "pause task" | "resume task" | "remove task"; node: string; task: string }
  | { kind: "enqueue"; node: string; task: string; inMs: number; key: string | null; limitKey: string | null }
  | { kind: "cancel"; node: string; run: number }
  | { kind: "begin operation"; node: string; asked: Asked }
  /** Stops the operation that began last. */
  | { kind: "stop operation"; node: string };

export interface TimedAct {
  readonly atMs: number;
  readonly act: Act;
}

/**
 * The main subject of a seed. `mixed`: something of everything; `doubt`: processes that are away for about as long as a session lasts, in
 * the midst of runs and of claims; `stops`: pauses, edits and cancellations close to when runs are due; `outage`: everything stands still
 * for longer than is planned ahead; `night`: crons about the hour in which the clocks are changed; `crowd`: many runs at once for few slots
 * of concurrency; `locks`: no tasks at all, and processes that pass locks around; `behind`: a standby that lacks the last seconds takes the
 * store's place, without edits, pauses or cancellations, which processes do not remember.
 */
export const sorts = ["mixed", "doubt", "stops", "outage", "night", "crowd", "locks", "behind"] as const;
export type Sort = (typeof sorts)[number];
