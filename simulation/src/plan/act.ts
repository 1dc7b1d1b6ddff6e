import type { OperationFilter, OperationKind } from "../../../scheduler/src/run/operations.ts";
import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Cut, Weather } from "../world/network.ts";

/** A request for an operation on many runs or tasks. Times are relative to the moment of the request. */
export interface Asked {
  readonly kind: OperationKind;
  readonly filter: OperationFilter;
  /** For operations on runs: leaves out runs that became due, or ended, more than this many ms ago; null: no limit. */
  readonly sinceAgoMs: number | null;
  /** Only for a backfill: the slots to run, and the rate. */
  readonly range: {
    readonly fromAgoMs: number;
    readonly toAgoMs: number;
    readonly perSecond: number | null;
    readonly reverse: boolean;
    readonly missed: boolean;
  } | null;
  /** True if the caller sends the request twice at the same time with the same token, as if the first reply had been lost. */
  readonly twice: boolean;
  /** True if the caller also carries out the operation's steps, concurrently with the leader. */
  readonly waits: boolean;
}

/** One event that the simulation causes at a given time. A seed determines the list of these events and all later random numbers. */
export type Act =
  | { kind: "crash"; node: string; forMs: number }
  | { kind: "restart"; node: string; forMs: number }
  | { kind: "pause"; node: string; forMs: number }
  | { kind: "cut"; node: string; service: "store" | "coordination"; way: Cut; forMs: number }
  /**
   * A crash, pause or cut that hits a node in the middle of an action. `at` is the action; the strike hits the next node that carries it
   * out:
   * - `run`: executes a run of some length
   * - `claim`: has claimed a run that is not due yet
   * - `hold`: holds a lock
   * - `step`: carries out a step of an operation
   * - `beat`: has a lock, and the reply to its heartbeat is under way
   * - `look`: reads an unchanged grace lock; the reply arrives when the holder's timeout is over by the node's clock
   *
   * With `edited`, the run's task loses its grace period meanwhile. With an `aim`, the strike waits for a run that can show the bug
   * (strikes.ts):
   * - `taken back`: the node reaches the store again after its session was ended, while the worker still grants the run its grace period
   * - `shown again`: the node is suspended until its session was ended; then the coordination service reports the node as alive again, and
   * the store cannot answer
   * - `word ends`: the coordination service cannot answer a node that does not lead, for longer than its last answer is valid
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
  /** All processes are suspended, as if they ran on one machine that was suspended. */
  | { kind: "standstill"; forMs: number }
  | { kind: "store down"; forMs: number }
  /** The standby that will replace the store later stops replicating. */
  | { kind: "standby falls behind" }
  /**
   * The primary dies, and after `forMs` the outdated standby becomes the store. Its sequences are ahead of its rows by `numbersAhead`,
   * because PostgreSQL writes them to its log in advance.
   */
  | { kind: "store goes back"; forMs: number; numbersAhead: number }
  /** The store's disk stalls: the store answers reads, but no commit. */
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
 * The main subject of a seed. `mixed`: something of everything. `doubt`: processes are away for about as long as a session lasts, in the
 * middle of runs and of claims. `stops`: pauses, edits and cancellations shortly before runs are due. `outage`: the store is down, or all
 * processes are suspended. `night`: cron schedules near a transition of daylight saving time. `crowd`: many runs at once for tasks with low
 * limits. `locks`: no tasks, but processes that compete for locks. `behind`: a standby that lacks the last seconds replaces the store,
 * without edits, pauses or cancellations, because processes do not remember those.
 */
export const sorts = ["mixed", "doubt", "stops", "outage", "night", "crowd", "locks", "behind"] as const;
export type Sort = (typeof sorts)[number];
