/** A scenario is plain data, so that it can be written as JSON, shrunk and replayed. */

/** What a handler does. It is the payload of the handler's run. */
export interface Behaviour {
  /** Duration of an attempt in ms. */
  readonly ms: number;
  /** The number of attempts that fail; later attempts succeed. */
  readonly fails: number;
  /** If set, the handler ignores its abort signal and returns after its full duration. */
  readonly deaf?: true;
  /** If set, the handler ends only when it is aborted. */
  readonly endless?: true;
  /** If set, the handler ends its run by spawning `children` runs of `task`; a run of `join` follows them. Both are task indexes. */
  readonly spawns?: { readonly task: number; readonly children: number; readonly join: number };
}

/** A task's options as JSON, like in a tasks file; other tasks are given by their index, times in ms. */
export interface TaskPlan {
  readonly every?: { readonly ms: number; readonly jitterMs?: number; readonly delay?: true };
  readonly blackout?: { readonly fromMs: number; readonly toMs: number; readonly then: "skip" | "delay" };
  /** If set, the task follows the scenario's calendar; `otherwise` decides about slots on days off. */
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
  /** Behaviour of the runs that the task's schedule creates, and of the runs that follow another task. */
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
      /** What the enqueue does if an unfinished run has the key; default: it returns that run. */
      readonly ifTaken?: "replace" | "again";
      readonly limitKey?: string;
      readonly priority?: number;
    }
  | { readonly op: "pause" | "resume"; readonly task: number }
  /** `run` is an index into the runs that exist at this moment, in order of creation, modulo their number. */
  | { readonly op: "cancel" | "rerun"; readonly run: number }
  /** The worker is declared dead and loses all its claims. On a test tower it continues, like a suspended process that resumes. */
  | { readonly op: "lose" }
  | { readonly op: "decide"; readonly run: number; readonly how: "retry" | "fail" }
  | { readonly op: "limit"; readonly group: number; readonly runs: number | null }
  | { readonly op: "edit"; readonly task: number; readonly to: TaskPlan }
  /** Replaces the calendar's holidays from this act on. */
  | { readonly op: "calendar"; readonly holidays: readonly number[] };

export interface Scenario {
  readonly seed: number;
  /** The worker's maximum of concurrent runs. */
  readonly concurrency: number;
  readonly tasks: readonly TaskPlan[];
  readonly acts: readonly Act[];
  /** The calendar's holidays as day numbers; 0 is the day on which the scenario begins. */
  readonly holidays?: readonly number[];
}

export const concurrencies = [1, 2, 4] as const;
export const groupCount = 2;
