/** What each scheduler under test looks like to the harness, whatever it calls things. */
import type { Slot } from "./account.ts";

/** The modules in subjects/, by the names that reports use; all but the first are peers from npm. */
export const names = ["carillon", "bullmq", "pg-boss", "graphile-worker"] as const;
export type Name = (typeof names)[number];

/** How a process is to be. Workers know their store by a line of their own that can be cut. */
export interface Order {
  readonly who: Name;
  readonly store: string;
  readonly name: string;
  readonly life: number;
  /** It adds these and ends, or runs what is there. */
  readonly adds?: readonly Slot[];
  /** Decides how long each slot's handler takes. */
  readonly seed: number;
  readonly log: string;
}

/** Resolves when the work of that slot is done. Of one that a schedule has, the key is made by `recurring`. */
export type Handle = (key: string) => Promise<void>;

export interface Subject {
  /** One-off runs, each under its key; resolves when they are acknowledged. Defines the schedule where that is kept in the store. */
  add(store: string, slots: readonly Slot[]): Promise<void>;
  work(order: Order, handle: Handle): Promise<void>;
}

export interface Traits {
  readonly server: "postgres" | "redis";
  /** The finest that its schedules have. */
  readonly periodMs: number;
}

export const traits: Record<Name, Traits> = {
  carillon: { server: "postgres", periodMs: 1_000 },
  bullmq: { server: "redis", periodMs: 1_000 },
  "pg-boss": { server: "postgres", periodMs: 60_000 },
  "graphile-worker": { server: "postgres", periodMs: 60_000 },
};

/** The same for all. */
export const concurrency = 10;
/** About so long after its last sign of life another may have what a process had, where that can be set. */
export const lockMs = 5_000;

export function recurring(slotMs: number): string {
  return `every ${slotMs}`;
}

/** Peers lie in a node_modules of bench/ alone, where scripts/prove/faults.mjs makes them be found: no types are there for the compiler. */
export const peer = (name: string) => import(name);
