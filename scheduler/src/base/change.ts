/** The acting session, and its term if it acts as leader. The store refuses writes of a session or a term that has ended. */
export interface Authority {
  sessionId: number;
  term: number | null;
}

export interface Change {
  author: string;
  reason: string;
  nowMs: number;
  /** For a task, an alarm rule or a hook stored by an apply: the bundle to which it then belongs. */
  bundle?: string;
  /** For an alarm rule or a hook stored by an apply: its content as the files have it, without edits by users that are kept. */
  applied?: object;
}

/** The author and the reason of a change. */
export type Why = Partial<Pick<Change, "author" | "reason">>;

/** Any object with the `query` method of pg's client, on which the caller has begun a transaction. */
export interface SqlClient {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}
