import type { OperationFilter, OperationKind } from "../../../scheduler/src/run/operations.ts";
import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Cut, Weather } from "../world/network.ts";

/** What is asked of many at once. Times are told from the moment in which it is asked. */
export interface Asked {
  readonly kind: OperationKind;
  readonly filter: OperationFilter;
  /** Of runs: none that came due, or ended, before. */
  readonly sinceAgoMs: number | null;
  /** Of a backfill. */
  readonly range: {
    readonly fromAgoMs: number;
    readonly toAgoMs: number;
    readonly perSecond: number | null;
    readonly reverse: boolean;
    readonly missed: boolean;
  } | null;
  /** Whoever asks does it twice at once, with one token, as if the first reply had been lost. */
  readonly twice: boolean;
  /** Whoever asks carries it out as well, beside the leader. */
  readonly waits: boolean;
}

/** One thing that is done to the cluster, at a time of the universe. A seed is a list of them and what the dice say after. */
export type Act =
  | { kind: "crash"; node: string; forMs: number }
  | { kind: "restart"; node: string; forMs: number }
  | { kind: "pause"; node: string; forMs: number }
  | { kind: "cut"; node: string; service: "store" | "coordination"; way: Cut; forMs: number }
  /**
   * The same to the next node that begins a run of some length, in the midst of it, or that claims one before its time,
   * between the two, or that gets a lock, while it has it, or that steps an operation, in the midst of the step, or that has
   * a lock and beats, while the answer is on its way, or that sees of a grace lock nothing new, so that it has the answer when the
   * holder's timeout is over by its clock. `edited`: meanwhile its task loses its grace. With an `aim` it waits for a run at
   * which that can be seen (strikes.ts):
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
  /** Every process stands still, as when their machine does. */
  | { kind: "standstill"; forMs: number }
  | { kind: "store down"; forMs: number }
  /** What it has now is all that the standby has which takes the store's place next. */
  | { kind: "standby falls behind" }
  /** The primary dies, and that standby is the store after `forMs`; of a sequence it has so many numbers more, as its log has. */
  | { kind: "store goes back"; forMs: number; numbersAhead: number }
  /** Its disk stands still: reads are answered, and no commit is. */
  | { kind: "store stalls"; forMs: number }
  | { kind: "coordination down"; forMs: number; wiped: boolean }
  | { kind: "wall"; node: string; stepMs: number }
  | { kind: "store clock"; stepMs: number }
  | { kind: "save"; node: string; task: string; definition: TaskDefinition }
  | { kind: "pause task" | "resume task" | "remove task"; node: string; task: string }
  | { kind: "enqueue"; node: string; task: string; inMs: number; key: string | null; limitKey: string | null }
  | { kind: "cancel"; node: string; run: number }
  | { kind: "begin operation"; node: string; asked: Asked }
  /** The one that was begun last. */
  | { kind: "stop operation"; node: string };

export interface TimedAct {
  readonly atMs: number;
  readonly act: Act;
}

/**
 * What a seed is mostly about. `mixed`: of everything something; `doubt`: processes that are away for about as long as a
 * session lasts, in the midst of runs and of claims; `stops`: pauses, edits and cancellations close to when runs are due;
 * `outage`: all of it stands still for longer than is planned ahead; `night`: crons about the hour in which the clocks are
 * changed; `crowd`: many runs at once for few places; `locks`: no tasks at all, and processes that pass locks around; `behind`: a standby
 * that lacks the last seconds takes the store's place, while nobody edits, pauses or cancels, which processes do not remember.
 */
export const sorts = ["mixed", "doubt", "stops", "outage", "night", "crowd", "locks", "behind"] as const;
export type Sort = (typeof sorts)[number];
