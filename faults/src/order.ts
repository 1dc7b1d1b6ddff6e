import type { TaskDefinition } from "../../scheduler/src/task/task.ts";
import type { Execution, Operation } from "../../simulation/src/history.ts";

export type Role = "node" | "worker" | "remote worker";

/** The configuration of a process; all its URLs and addresses lead through proxies. */
export interface Order {
  readonly name: string;
  readonly life: number;
  readonly role: Role;
  readonly store: string;
  readonly coordination: string | undefined;
  readonly schema: string;
  /** For a node: the address on which it listens for remote workers. */
  readonly listen: string | undefined;
  readonly servers: readonly string[];
  readonly key: string;
  readonly sessionTimeoutMs: number;
  readonly concurrency: number;
  readonly tasks: readonly string[];
  /** Determines how long each handler takes and how it ends. */
  readonly seed: number;
  /** Path of the log file to which all processes append lines. */
  readonly log: string;
}

export type Act =
  | { readonly kind: "save"; readonly task: string; readonly definition: TaskDefinition }
  | { readonly kind: "pause task" | "resume task" | "remove task"; readonly task: string }
  | { readonly kind: "enqueue"; readonly task: string; readonly dueMs: number; readonly key: string | null }
  | { readonly kind: "cancel"; readonly task: string; readonly run: number };

export type Asked =
  | { readonly kind: "stop" }
  /** Blocks the process's event loop for `ms`. */
  | { readonly kind: "block"; readonly ms: number }
  /** Moves the process's wall clock by `ms`, which may be negative. */
  | { readonly kind: "step clock"; readonly ms: number }
  | { readonly kind: "do"; readonly id: string; readonly act: Act };

export type Told =
  | { readonly kind: "started" }
  | { readonly kind: "stopped" }
  | ({ readonly kind: "done"; readonly id: string } & Pick<Operation, "outcome" | "answer" | "run" | "created">);

/** A line of the processes' log. `at` is in ms on the machine's monotonic clock, which all its processes share. */
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
  /** The process received no CPU time for the last `ms`. */
  | { readonly kind: "stalled"; readonly at: number; readonly node: string; readonly ms: number };

export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
