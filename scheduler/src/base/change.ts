/** Who acts: a live session, and the term when it acts as leader. The store refuses one that has ended. */
export interface Authority {
  sessionId: number;
  term: number | null;
}

export interface Change {
  author: string;
  reason: string;
  nowMs: number;
  /** Of a task that is stored because a bundle's files say so: the bundle owns it from then on. */
  bundle?: string;
}

/** Whom a change is put down to, and why it was made. */
export type Why = Partial<Pick<Change, "author" | "reason">>;

/** Anything with pg's `query`: a client on which the caller began a transaction. */
export interface SqlClient {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}
