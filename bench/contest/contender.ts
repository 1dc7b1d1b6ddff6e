/** What every scheduler or queue under test looks like to a bench, whatever it calls things. */

/** How a process under test is to be set up. */
export interface Order {
  who: string;
  /** Of a database that nobody else uses. */
  postgres: string;
  redis: string;
  /** many: there is a backlog to get through. prompt: what is added, or comes due, is to start at once. */
  profile: "many" | "prompt";
  /** Whether it only adds, or also runs. */
  role: "adds" | "runs";
  /** Keep no history of runs that went well, where there is that choice; default: whatever it keeps. */
  history?: "failures";
}

export interface Added {
  id: number;
  /** Epoch milliseconds; absent: at once. */
  dueMs?: number;
}

/** One of them in a process of its own, connected. */
export interface Contender {
  /** Asks for these in the way its docs advise for many, or for one. Resolves when they are safe. */
  add(runs: Added[]): Promise<unknown>;
  /** Adds one run, and resolves once the caller has received what its handler returned. */
  addAndWait?(id: number): Promise<unknown>;
  /** Begins to run what was added: as many at once as it is set up for, where what `handle` gives is waited for. */
  work(handle: (id: number) => void | Promise<void>): Promise<unknown>;
  /** Begins to run so many tasks, each at every minute's start, for whom a task's number is the id. */
  everyMinute?(tasks: number, handle: (id: number) => void): Promise<unknown>;
  /** The same, each at a time of its own within the period. */
  everyPeriod?(tasks: number, periodMs: number, handle: (id: number) => void): Promise<unknown>;
  /** Begins to run tasks that are in its store already, for which no code stands here; the id is the slot's time. */
  workStored?(handle: (id: number) => void): Promise<unknown>;
  /** In order: what it has in hand ends first. */
  stop(): Promise<unknown>;
}

/** What its own tables say, asked by the process that measures. */
export interface Books {
  /** Added and not ended yet; also what failed and is kept for another try. */
  left(): Promise<number>;
  /** Ended well, where it keeps count of that; else null. */
  ended(): Promise<number | null>;
}

export interface ContenderModule {
  open(order: Order): Promise<Contender>;
  books(order: Pick<Order, "redis">, query: Query): Books;
}

export type Query = <Row>(text: string) => Promise<Row[]>;

/** The modules beside this file, by the names that reports use; all but the first are peers from npm. */
export const contenders = ["carillon", "graphile-worker", "pg-boss", "bullmq"] as const;
export type Name = (typeof contenders)[number];

export async function moduleOf(who: string): Promise<ContenderModule> {
  if (!contenders.some((name) => name === who)) throw new Error(`nobody here is called ${who}`);
  return import(new URL(`./${who}.js`, import.meta.url).href);
}

/** A peer lies in a node_modules of bench/ alone: its types are not there when this is compiled. */
export const peer = (name: string) => import(name);

/** The one task that all of it is. */
export const taskName = "bench";
