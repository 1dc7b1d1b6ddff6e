/** One scenario as plain data: it can be written as JSON, shrunk, and replayed. */

/** The behaviour of a handler. It is the payload of its run. */
export interface Behaviour {
  /** Duration of a try. */
  readonly ms: number;
  /** The first `fails` tries fail. */
  readonly fails: number;
  /** Set if the handler ignores its signal: it runs to its end and then returns. */
  readonly deaf?: true;
  /** Set if the handler ends only when it is aborted. */
  readonly endless?: true;
  /** Set if the handler ends its run by spawning these children. */
  readonly spawns?: { readonly task: number; readonly children: number; readonly join: number };
}

/** A task's options as JSON, in the form of a file of tasks; other tasks are given by their index. */
export interface TaskPlan {
  readonly every?: { readonly ms: number; readonly jitterMs?: number; readonly delay?: true };
  readonly blackout?: { readonly fromMs: number; readonly toMs: number; readonly then: "skip" | "delay" };
  /** The scenario's calendar, on its working days. */
  readonly calendar?: { readonly otherwise: "skip" | "next" | "previous" };
  readonly overlap?: "allow" | "queue" | "skip" | "replace" | { readonly allow: number } | { readonly queue: number };
  readonly retry?: {
    readonly attempts: number;
    readonly backoff: "fixed" | "exponential";
    readonly delay: number;
    readonly maxDelay: number;
    readonly jitter: number;
  };
  readonly timeout?: number;
  readonly priority?: number;
  readonly perKey?: number;
  readonly perWorker?: number;
  readonly route?:
    | "least-loaded"
    | "round-robin"
    | "sticky"
    | "random"
    | "broadcast"
    | { readonly hash: "key" }
    | { readonly shards: number };
  readonly rate?: { readonly limit: number; readonly per: number };
  readonly misfire?: {
    readonly policy: "fire_once" | "skip" | "all";
    readonly after?: number;
    readonly waiting?: true;
  };
  readonly onWorkerLost?: "retry" | "fail" | "ask";
  readonly workerLosses?: number;
  readonly history?: "failures";
  readonly group?: number;
  readonly after?: { readonly task: number; readonly on: "success" | "failure" | "any" };
  /** Behaviour of the runs that its schedule makes, and of those that follow other tasks. */
  readonly slots?: Behaviour;
}

export type Act =
  | { readonly op: "advance"; readonly ms: number }
  | {
      readonly op: "enqueue";
      readonly task: number;
      readonly does: Behaviour;
      readonly inMs?: number;
      readonly key?: string;
      /** The enqueue's behaviour if the key is taken; default: nothing. */
      readonly ifTaken?: "replace" | "again";
      readonly limitKey?: string;
      readonly priority?: number;
    }
  | { readonly op: "pause" | "resume"; readonly task: number }
  /** The n-th of the present runs, in the order in which they were made, counted modulo their number. */
  | { readonly op: "cancel" | "rerun"; readonly run: number }
  /** The worker is declared dead, with all its claims, but continues like a process that stood still. */
  | { readonly op: "lose" }
  | { readonly op: "decide"; readonly run: number; readonly how: "retry" | "fail" }
  | { readonly op: "limit"; readonly group: number; readonly runs: number | null }
  | { readonly op: "edit"; readonly task: number; readonly to: TaskPlan }
  /** Replaces the calendar's holidays from now on. */
  | { readonly op: "calendar"; readonly holidays: readonly number[] };

export interface Scenario {
  readonly seed: number;
  /** The worker's maximum of concurrent runs. */
  readonly concurrency: number;
  readonly tasks: readonly TaskPlan[];
  readonly acts: readonly Act[];
  /** Days off of its calendar: 0 is the day on which the scenario begins. */
  readonly holidays?: readonly number[];
}

export const concurrencies = [1, 2, 4] as const;
export const groupCount = 2;
