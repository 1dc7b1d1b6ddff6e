/** What is known of a request that came with an idempotency key. */
export type Beginning =
  /** It is this caller's to carry out, for the first time or because whoever had it is gone. */
  | { kind: "begun"; token: string; runIds: number[] }
  | { kind: "answered"; status: number; answer: unknown; version: number | null }
  | { kind: "busy" }
  | { kind: "mismatch" };

/**
 * The part of the store's port that makes a repeated request one request. The numbers of runs are drawn with the key, so that
 * whoever goes on after a crash finds the runs that were made.
 */
export interface AnswerStore {
  /** @param request a hash of what is asked @param runs how many numbers to draw @param busyMs after this its first caller is gone */
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
  /** Nothing was done: the key is free again. */
  forget(who: string, key: string, token: string): Promise<void>;
  /**
   * What was done is not known: the next who asks goes on at once.
   * @param begunMs when it is to have begun: so long ago that nobody waits for it, and not so long that it is forgotten
   */
  leave(who: string, key: string, token: string, begunMs: number): Promise<void>;
}
