/** The state of a request that came with an idempotency key. */
export type Beginning =
  /** This caller must carry out the request: it is the first caller, or the earlier caller is gone. */
  | { kind: "begun"; token: string; runIds: number[] }
  | { kind: "answered"; status: number; answer: unknown; version: number | null }
  | { kind: "busy" }
  | { kind: "mismatch" };

/**
 * The part of the store's port that makes repetitions of a request take effect only once. The numbers of runs are drawn together with the
 * key, so that a caller that continues after a crash finds the runs that were made.
 */
export interface AnswerStore {
  /**
   * @param request a hash of the request @param runs how many numbers to draw @param busyMs after this time the first caller counts as gone
   */
  begin(
    asked: { who: string; key: string; request: Buffer; runs: number },
    nowMs: number,
    busyMs: number,
  ): Promise<Beginning>;
  finish(
    who: string,
    key: string,
    token: string,
    answer: { status: number; answer: unknown; version: number | null },
  ): Promise<void>;
  /** Called when the request had no effect: frees the key. */
  forget(who: string, key: string, token: string): Promise<void>;
  /**
   * Marks a request whose outcome is unknown: the next caller with the key continues it at once.
   * @param begunMs the start time to record: long enough ago that the request does not count as busy, and recent enough that it is not
   * deleted
   */
  leave(who: string, key: string, token: string, begunMs: number): Promise<void>;
}
