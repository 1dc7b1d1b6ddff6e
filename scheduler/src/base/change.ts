/** The acting session, with its term if it acts as leader. The store refuses a session or a term that has ended. */
export interface Authority {
  sessionId: number;
  term: number | null;
}

export interface Change {
  author: string;
  reason: string;
  nowMs: number;
  /** For a task stored by an apply: the bundle that owns the task from then on. */
  bundle?: string;
}

/** The author of a change, and its reason. */
export type Why = Partial<Pick<Change, "author" | "reason">>;

/** Any object with pg's `query` method: a client on which the caller began a transaction. */
export interface SqlClient {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}
