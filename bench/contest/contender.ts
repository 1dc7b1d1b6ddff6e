/** The interface of every scheduler or queue under test, in the words of the benches. */

/** The setup of a process under test. */
export interface Order {
  who: string;
  /** The URL of a database that only this contender uses. */
  postgres: string;
  redis: string;
  /** many: there is a backlog to get through. prompt: runs that are added, or come due, should start at once. */
  profile: "many" | "prompt";
  /** Whether the process adds runs or runs them. */
  role: "adds" | "runs";
  /** Keep no history of successful runs, if the contender has that option; default: its own default. */
  history?: "failures";
}

export interface Added {
  id: number;
  /** The due time in epoch ms; absent: at once. */
  dueMs?: number;
}

/** One contender in a process of its own, connected. */
export interface Contender {
  /** Adds these runs in the way that the contender's docs advise for many runs, or for one. Resolves once they are stored safely. */
  add(runs: Added[]): Promise<unknown>;
  /** Adds one run, and resolves once the caller has received what its handler returned. */
  addAndWait?(id: number): Promise<unknown>;
  /** Begins to run the added runs, with the configured concurrency, and waits for the promise that `handle` returns. */
  work(handle: (id: number) => void | Promise<void>): Promise<unknown>;
  /** Begins to run `count` tasks, each at every minute's start; a task's number is the id. */
  everyMinute?(tasks: number, handle: (id: number) => void): Promise<unknown>;
  /** Like `everyMinute`, with a given period; each task is due at its own time within the period. */
  everyPeriod?(tasks: number, periodMs: number, handle: (id: number) => void): Promise<unknown>;
  /** Begins to run tasks that are in its store already and have no code here; the id is the slot's time. */
  workStored?(handle: (id: number) => void): Promise<unknown>;
  /** Stops gracefully: runs in progress end first. */
  stop(): Promise<unknown>;
}

/** The contender's own tables, queried by the measuring process. */
export interface Books {
  /** Runs that were added and have not ended; also failed ones that are kept for another try. */
  left(): Promise<number>;
  /** The number of successful ends; null if the contender does not count them. */
  ended(): Promise<number | null>;
}

export interface ContenderModule {
  open(order: Order): Promise<Contender>;
  books(order: Pick<Order, "redis">, query: Query): Books;
}

export type Query = <Row>(text: string) => Promise<Row[]>;

/** The modules beside this file, by the names that reports use; all except the first are peers from npm. */
export const contenders = ["carillon", "graphile-worker", "pg-boss", "bullmq"] as const;
export type Name = (typeof contenders)[number];

export async function moduleOf(who: string): Promise<ContenderModule> {
  if (!contenders.some((name) => name === who)) throw new Error(`nobody here is called ${who}`);
  return import(new URL(`./${who}.js`, import.meta.url).href);
}

/** Imports a peer. Peers are installed only in the node_modules of bench/, so their types are missing at compile time. */
export const peer = (name: string) => import(name);

/** The one task of all these runs. */
export const taskName = "bench";
