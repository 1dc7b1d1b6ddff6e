/** The state of an API request that was sent with an idempotency key. */
export type Beginning =
  /** This caller must execute the request: it is the first caller with the key, or the earlier caller has presumably died. */
  | { kind: "begun"; token: string; runIds: number[] }
  | { kind: "answered"; status: number; answer: unknown; version: number | null }
  | { kind: "busy" }
  | { kind: "mismatch" };

/**
 * Makes an API request that is sent again with the same idempotency key take effect only once. The ids of the request's runs are reserved
 * together with the key, so that a caller that continues after a crash finds the runs that were created.
 */
export interface AnswerStore {
  /**
   * @param request a hash of the request
   * @param runs the number of run ids to reserve
   * @param busyMs after this time, the first caller is presumed dead
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
  /** Deletes the key, because the request had no effect. */
  forget(who: string, key: string, token: string): Promise<void>;
  /**
   * Marks a request whose outcome is unknown, so that the next caller with the key continues it at once.
   * @param begunMs the start time to store: old enough that the request does not count as busy, and recent enough that it is not deleted
   */
  leave(who: string, key: string, token: string, begunMs: number): Promise<void>;
}
