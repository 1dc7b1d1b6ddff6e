/** The acting session, and its term if it acts as leader. The store refuses writes of a session or a term that has ended. */
export interface Authority {
  sessionId: number;
  term: number | null;
}

export interface Change {
  author: string;
  reason: string;
  nowMs: number;
  /** For a task stored by an apply: the bundle to which the task then belongs. */
  bundle?: string;
}

/** The author and the reason of a change. */
export type Why = Partial<Pick<Change, "author" | "reason">>;

/** Any object with the `query` method of pg's client, on which the caller has begun a transaction. */
export interface SqlClient {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}
