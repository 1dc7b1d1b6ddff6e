/** The messages between a worker and a host, which is a thread or a process that runs handlers. */
import type { Json } from "../../base/json.ts";
import type { Onward } from "../../run/flow.ts";
import type { Run, RunLog } from "../../run/handler.ts";
import type { Thrown } from "./thrown.ts";

/** The properties of a run that a handler can read, as data that can be sent. */
export interface RunFields
  extends Pick<Run, "id" | "task" | "schedule" | "attempt" | "key" | "labels" | "shard" | "fence" | "state"> {
  slotMs: number | null;
  dueMs: number;
}

/** The methods of `Run` that the host forwards to the worker. */
export const asked = ["secret", "saveState", "spawn", "fanOut", "inputs", "complete"] as const;
export type Asked = (typeof asked)[number];

export type ToHost =
  /** Tells the host to load these modules before its first run. */
  | { kind: "load"; modules: readonly string[] }
  /**
   * Starts a run. A host executes one run at a time; `turn` numbers the runs.
   * @param trace the span that the run belongs to, as a W3C traceparent
   */
  | { kind: "run"; turn: number; module: string; fields: RunFields; payload: unknown; trace: string | undefined }
  | { kind: "abort"; turn: number; reason: Thrown }
  | { kind: "answer"; turn: number; question: number; outcome: Outcome }
  /** A statement that the host executes with the client that the handler passed to `run.complete`. */
  | { kind: "query"; turn: number; query: number; question: number; text: string; values: unknown[] | undefined };

export type FromHost =
  | { kind: "loaded"; faults: { module: string; thrown: Thrown }[] }
  | { kind: "log"; turn: number; level: keyof RunLog; message: string; fields: Json }
  | { kind: "progress"; turn: number; value: unknown }
  | { kind: "ask"; turn: number; question: number; name: Asked; given: unknown[] }
  | { kind: "queried"; turn: number; query: number; outcome: Outcome }
  | ({ kind: "ended"; turn: number } & Ended)
  /** An uncaught error, after which the host ends. */
  | { kind: "crashed"; thrown: Thrown };

export type Outcome = { value: unknown } | { thrown: Thrown };

/** How a handler ended. `text` is its result as JSON; null if it returned nothing, or nothing that can be stored. */
export type Ended = { text: string | null } | { onward: Onward } | { snoozeMs: number } | { thrown: Thrown };
