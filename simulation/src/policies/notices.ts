import type { Behaviour } from "./scenario.ts";
import type { Try } from "./seen.ts";

/** An event of an attempt, recorded by its handler, or the loss of a worker with its claims. Times are epoch ms. */
export type Notice =
  | {
      readonly kind: "began";
      readonly fence: number;
      readonly atMs: number;
      readonly runId: number;
      readonly task: number;
      readonly attempt: number;
      readonly does: Behaviour;
    }
  | { readonly kind: "aborted"; readonly fence: number; readonly atMs: number; readonly code: string }
  | { readonly kind: "ended"; readonly fence: number; readonly atMs: number; readonly how: "returned" | "threw" }
  /** `killed`: true if the worker process was killed with its attempts; false if it continues, like a process that was suspended. */
  | { readonly kind: "lost"; readonly fences: readonly number[]; readonly atMs: number; readonly killed: boolean };

/** Converts notices to attempts, in the order in which they began. @param beganMs the scenario's beginning, epoch ms */
export function triesFrom(notices: readonly Notice[], beganMs: number): Try[] {
  const tries = new Map<number, Try>();
  /** Times at which claims were lost (epoch ms), by fence. */
  const lost = new Map<number, number>();
  for (const [at, notice] of notices.entries()) {
    const atMs = notice.atMs - beganMs;
    if (notice.kind === "began") {
      const { kind: _, atMs: __, ...what } = notice;
      const lostMs = lost.get(notice.fence);
      const stale = lostMs === undefined ? {} : { lostMs, afterLoss: true as const };
      tries.set(notice.fence, { ...what, fromMs: atMs, began: at, ...stale });
    } else if (notice.kind === "lost") {
      for (const fence of notice.fences) lost.set(fence, atMs);
      for (const one of tries.values()) {
        if (one.end) continue;
        if (notice.fences.includes(one.fence)) one.lostMs = atMs;
        if (notice.killed) one.end = { atMs, ended: at, how: "killed" };
      }
    } else {
      const one = tries.get(notice.fence);
      if (!one) throw new Error(`claim ${notice.fence} ${notice.kind} before its try began`);
      if (notice.kind === "aborted") one.abort = { atMs, code: notice.code };
      else one.end = { atMs, ended: at, how: notice.how };
    }
  }
  return [...tries.values()];
}
