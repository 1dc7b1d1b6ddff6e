import type { TaskDefinition } from "../../scheduler/src/task/task.ts";
import type { Execution, Operation } from "../../simulation/src/history.ts";

export type Role = "node" | "worker" | "remote worker";

/** Order for a process; each of its lines goes through a proxy. */
export interface Order {
  readonly name: string;
  readonly life: number;
  readonly role: Role;
  readonly store: string;
  readonly coordination: string | undefined;
  readonly schema: string;
  /** For a node: its address for remote workers. For a remote worker: the servers. */
  readonly listen: string | undefined;
  readonly servers: readonly string[];
  readonly key: string;
  readonly sessionTimeoutMs: number;
  readonly concurrency: number;
  readonly tasks: readonly string[];
  /** Determines how long handlers take and how they end. */
  readonly seed: number;
  /** Every process appends lines to it. */
  readonly log: string;
}

export type Act =
  | { readonly kind: "save"; readonly task: string; readonly definition: TaskDefinition }
  | { readonly kind: "pause task" | "resume task" | "remove task"; readonly task: string }
  | { readonly kind: "enqueue"; readonly task: string; readonly dueMs: number; readonly key: string | null }
  | { readonly kind: "cancel"; readonly task: string; readonly run: number };

export type Asked =
  | { readonly kind: "stop" }
  /** Blocks its event loop for `ms`. */
  | { readonly kind: "block"; readonly ms: number }
  /** Its wall clock jumps forward by `ms`. */
  | { readonly kind: "step clock"; readonly ms: number }
  | { readonly kind: "do"; readonly id: string; readonly act: Act };

export type Told =
  | { readonly kind: "started" }
  | { readonly kind: "stopped" }
  | ({ readonly kind: "done"; readonly id: string } & Pick<Operation, "outcome" | "answer" | "run" | "created">);

/** A line of the processes' log. `at`: milliseconds of the machine's monotonic clock, which all of its processes share. */
export type Noted =
  | ({ readonly kind: "start"; readonly at: number } & Omit<
      Execution,
      "startMs" | "startStoreMs" | "endMs" | "how" | "stoppedWhy"
    >)
  | {
      readonly kind: "end";
      readonly at: number;
      readonly fence: number;
      readonly how: Execution["how"];
      readonly why: string | null;
    }
  | {
      readonly kind: "log";
      readonly at: number;
      readonly node: string;
      readonly level: "info" | "warn" | "error";
      readonly text: string;
    }
  /** The process had no processor for the last `ms`. */
  | { readonly kind: "stalled"; readonly at: number; readonly node: string; readonly ms: number };

export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
