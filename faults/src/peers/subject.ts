/** The common interface of the schedulers under test. */
import type { Slot } from "./account.ts";

/** The modules in subjects/, by the names that reports use; all but the first are peers from npm. */
export const names = ["carillon", "bullmq", "pg-boss", "graphile-worker"] as const;
export type Name = (typeof names)[number];

/** The configuration of a process. Workers reach their store through a proxy of their own, which can cut the connection. */
export interface Order {
  readonly who: Name;
  readonly store: string;
  readonly name: string;
  readonly life: number;
  /** The process adds these slots and exits; undefined: it executes the slots in the store. */
  readonly adds?: readonly Slot[];
  /** Determines how long each slot's handler takes. */
  readonly seed: number;
  readonly log: string;
}

/**
 * Runs the handler of the slot with this key, and resolves when it has ended. `recurring` returns the keys of a schedule's slots.
 */
export type Handle = (key: string) => Promise<void>;

export interface Subject {
  /** Adds one-off runs, each with its key; resolves when they are acknowledged. Also defines the schedule, if the store holds schedules. */
  add(store: string, slots: readonly Slot[]): Promise<void>;
  work(order: Order, handle: Handle): Promise<void>;
}

export interface Traits {
  readonly server: "postgres" | "redis";
  /** The shortest period of its schedules, in ms. */
  readonly periodMs: number;
}

export const traits: Record<Name, Traits> = {
  carillon: { server: "postgres", periodMs: 1_000 },
  bullmq: { server: "redis", periodMs: 1_000 },
  "pg-boss": { server: "postgres", periodMs: 60_000 },
  "graphile-worker": { server: "postgres", periodMs: 60_000 },
};

/** The number of runs that a process executes at once, the same for all subjects. */
export const concurrency = 10;
/** About this many ms after a process's last heartbeat another process may take over its runs, for subjects with such a setting. */
export const lockMs = 5_000;

export function recurring(slotMs: number): string {
  return `every ${slotMs}`;
}

/**
 * Imports a peer's package. Peers are installed only in the node_modules of bench/, where scripts/prove/faults.mjs makes them resolvable;
 * so their types are missing at compile time.
 */
export const peer = (name: string) => import(name);
