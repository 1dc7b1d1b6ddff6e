/** One scenario, as plain data: it can be written as JSON, made smaller, and played again. */

/** How a handler behaves. It is the payload of its run. */
export interface Behaviour {
  /** How long a try takes. */
  readonly ms: number;
  /** The first so many tries fail. */
  readonly fails: number;
  /** It does not look at its signal: it takes its time, and then returns. */
  readonly deaf?: true;
  /** It ends only when it is told to. */
  readonly endless?: true;
  /** It ends its run so. */
  readonly spawns?: { readonly task: number; readonly children: number; readonly join: number };
}

/** A task's options as JSON, as a file of tasks has them; other tasks by their place. */
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
  /** Of the runs that its schedule makes, and of those that come after others. */
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
      readonly limitKey?: string;
      readonly priority?: number;
    }
  | { readonly op: "pause" | "resume"; readonly task: number }
  /** The n-th of the runs that there are then, in the order in which they were made, counted round. */
  | { readonly op: "cancel" | "rerun"; readonly run: number }
  /** The worker is taken for dead, with all that it has claimed; it goes on, as one that stood still does. */
  | { readonly op: "lose" }
  | { readonly op: "decide"; readonly run: number; readonly how: "retry" | "fail" }
  | { readonly op: "limit"; readonly group: number; readonly runs: number | null }
  | { readonly op: "edit"; readonly task: number; readonly to: TaskPlan }
  /** The calendar has these holidays from now on. */
  | { readonly op: "calendar"; readonly holidays: readonly number[] };

export interface Scenario {
  readonly seed: number;
  /** Of the worker: how many runs at once. */
  readonly concurrency: number;
  readonly tasks: readonly TaskPlan[];
  readonly acts: readonly Act[];
  /** Days of its calendar on which nothing is worked: 0 is the day on which the scenario begins. */
  readonly holidays?: readonly number[];
}

export const concurrencies = [1, 2, 4] as const;
export const groupCount = 2;
