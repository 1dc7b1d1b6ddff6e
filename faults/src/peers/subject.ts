/** The common interface of the schedulers under test, in neutral terms. */
import type { Slot } from "./account.ts";

/** The modules in subjects/, by the names that reports use; all but the first are peers from npm. */
export const names = ["carillon", "bullmq", "pg-boss", "graphile-worker"] as const;
export type Name = (typeof names)[number];

/** Order for a process. Workers reach their store through a line of their own that can be cut. */
export interface Order {
  readonly who: Name;
  readonly store: string;
  readonly name: string;
  readonly life: number;
  /** The process adds these slots and ends; if absent, it runs the slots in the store. */
  readonly adds?: readonly Slot[];
  /** Decides how long each slot's handler takes. */
  readonly seed: number;
  readonly log: string;
}

/** Resolves when the work of that slot is done. For a slot of a schedule, `recurring` makes the key. */
export type Handle = (key: string) => Promise<void>;

export interface Subject {
  /** Adds one-off runs, each under its key; resolves when they are acknowledged. Defines the schedule, if the store keeps it. */
  add(store: string, slots: readonly Slot[]): Promise<void>;
  work(order: Order, handle: Handle): Promise<void>;
}

export interface Traits {
  readonly server: "postgres" | "redis";
  /** The finest period that its schedules have. */
  readonly periodMs: number;
}

export const traits: Record<Name, Traits> = {
  carillon: { server: "postgres", periodMs: 1_000 },
  bullmq: { server: "redis", periodMs: 1_000 },
  "pg-boss": { server: "postgres", periodMs: 60_000 },
  "graphile-worker": { server: "postgres", periodMs: 60_000 },
};

/** The number of concurrent runs of a process, the same for all subjects. */
export const concurrency = 10;
/** About this long after a process's last sign of life another may take over its runs, where that can be set. */
export const lockMs = 5_000;

export function recurring(slotMs: number): string {
  return `every ${slotMs}`;
}

/** Peers lie in a node_modules of bench/ alone, where scripts/prove/faults.mjs makes them resolvable: the compiler finds no types there. */
export const peer = (name: string) => import(name);
