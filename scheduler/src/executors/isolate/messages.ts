/** The messages between a worker and a host, which is a thread or a process that runs handlers. */
import type { Json } from "../../base/json.ts";
import type { Onward } from "../../run/flow.ts";
import type { Run, RunLog } from "../../run/handler.ts";
import type { Thrown } from "./thrown.ts";

/** The fields of a run that its handler can read, as plain data. */
export interface RunFields
  extends Pick<Run, "id" | "task" | "schedule" | "attempt" | "key" | "labels" | "shard" | "fence" | "state"> {
  slotMs: number | null;
  dueMs: number;
}

/** The calls of a run that a handler can make; the worker executes them. */
export const asked = ["secret", "saveState", "spawn", "fanOut", "inputs", "complete"] as const;
export type Asked = (typeof asked)[number];

export type ToHost =
  /** Loads these modules before the first run. */
  | { kind: "load"; modules: readonly string[] }
  /**
   * Starts a run; a host has one run at a time, and `turn` numbers them. @param trace the span that the run belongs to, as W3C's
   * traceparent
   */
  | { kind: "run"; turn: number; module: string; fields: RunFields; payload: unknown; trace: string | undefined }
  | { kind: "abort"; turn: number; reason: Thrown }
  | { kind: "answer"; turn: number; question: number; outcome: Outcome }
  /** A statement for the client that the handler gave to `run.complete`. */
  | { kind: "query"; turn: number; query: number; question: number; text: string; values: unknown[] | undefined };

export type FromHost =
  | { kind: "loaded"; faults: { module: string; thrown: Thrown }[] }
  | { kind: "log"; turn: number; level: keyof RunLog; message: string; fields: Json }
  | { kind: "progress"; turn: number; value: unknown }
  | { kind: "ask"; turn: number; question: number; name: Asked; given: unknown[] }
  | { kind: "queried"; turn: number; query: number; outcome: Outcome }
  | ({ kind: "ended"; turn: number } & Ended)
  /** An error that nothing has caught: the host ends. */
  | { kind: "crashed"; thrown: Thrown };

export type Outcome = { value: unknown } | { thrown: Thrown };

/** `text` is the result as JSON; null: the handler returned nothing. */
export type Ended = { text: string | null } | { onward: Onward } | { snoozeMs: number } | { thrown: Thrown };
