/** The interface that each scheduler or queue under test implements for the benches. */

/** The configuration of a process under test. */
export interface Order {
  who: string;
  /** The URL of a database that only this contender uses. */
  postgres: string;
  redis: string;
  /** "many": the process works through a backlog. "prompt": runs should start as soon as they are added or due. */
  profile: "many" | "prompt";
  /** The part of the process: it adds runs, or it executes them. */
  role: "adds" | "runs";
  /** "failures": keep no history of successful runs, if the contender has this option. Default: the contender's own default. */
  history?: "failures";
  /**
   * "relaxed": what is added is acknowledged before it is on disk, if the contender has this option. Default: the contender's own default.
   */
  durability?: "relaxed";
  /** True: Carillon's processes send alarms, so that the alarm rules of the settings are evaluated. Default: no alarms. Peers ignore it. */
  alarms?: boolean;
}

export interface Added {
  id: number;
  /** The due time in epoch ms; undefined: due at once. */
  dueMs?: number;
}

/** A connected contender in a process of its own. */
export interface Contender {
  /** Adds the runs as the contender's docs advise for this number of runs. Resolves once they are stored durably. */
  add(runs: Added[]): Promise<unknown>;
  /** Adds one run; resolves when the caller has received the result of its handler. */
  addAndWait?(id: number): Promise<unknown>;
  /** Starts to execute the added runs with the configured concurrency. A run ends when the promise returned by `handle` resolves. */
  work(handle: (id: number) => void | Promise<void>): Promise<unknown>;
  /** Defines `count` tasks that are due at the start of each minute and executes them; `handle` receives the task's number. */
  everyMinute?(tasks: number, handle: (id: number) => void): Promise<unknown>;
  /** Does the same as `everyMinute`, but with a period of `periodMs`; each task is due at its own offset in the period. */
  everyPeriod?(tasks: number, periodMs: number, handle: (id: number) => void): Promise<unknown>;
  /** Executes tasks that are already stored and have no handler in this process; `handle` receives the slot's time as the id. */
  workStored?(handle: (id: number) => void): Promise<unknown>;
  /** Stops gracefully, after the runs in progress have ended. */
  stop(): Promise<unknown>;
}

/** Queries of the contender's own tables, which the measuring process makes. */
export interface Books {
  /** Returns the number of unfinished runs, including failed runs that await a retry. */
  left(): Promise<number>;
  /** Returns the number of successful runs; null if the contender does not count them. */
  ended(): Promise<number | null>;
}

export interface ContenderModule {
  open(order: Order): Promise<Contender>;
  books(order: Pick<Order, "redis">, query: Query): Books;
}

export type Query = <Row>(text: string) => Promise<Row[]>;

/** Names of the contenders' modules in this folder, as reports show them. All but the first are peers from npm. */
export const contenders = ["carillon", "graphile-worker", "pg-boss", "bullmq"] as const;
export type Name = (typeof contenders)[number];

export async function moduleOf(who: string): Promise<ContenderModule> {
  if (!contenders.some((name) => name === who)) throw new Error(`nobody here is called ${who}`);
  return import(new URL(`./${who}.js`, import.meta.url).href);
}

/** Imports a peer's package. Peers are installed only in the node_modules of bench/, so their types are missing at compile time. */
export const peer = (name: string) => import(name);

/** Name of the task or queue to which the added runs belong; the names of most recurring tasks begin with it. */
export const taskName = "bench";
