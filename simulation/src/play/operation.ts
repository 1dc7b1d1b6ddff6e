import { type Clock, pause } from "../../../scheduler/src/base/clock.ts";
import type { OperationRequest } from "../../../scheduler/src/run/operations.ts";
import type { Store } from "../../../scheduler/src/store/store.ts";
import type { Asked } from "../plan/act.ts";

/** Returns the request as an operator makes it. @param nowMs the store's time in ms */
export function requestOf(asked: Asked, nowMs: number, author: string, reason: string): OperationRequest {
  const { kind, filter, sinceAgoMs, range } = asked;
  return {
    kind,
    author,
    reason,
    filter: { ...filter, ...(sinceAgoMs === null ? {} : { sinceMs: Math.round(nowMs - sinceAgoMs) }) },
    ...(range
      ? {
          range: {
            fromMs: Math.round(nowMs - range.fromAgoMs),
            toMs: Math.round(nowMs - range.toAgoMs),
            perSecond: range.perSecond,
            reverse: range.reverse,
            missed: range.missed,
          },
        }
      : {}),
  };
}

const lookMs = 1_000;

/** Carries out an operation step by step, as the command-line option `--wait` does. @throws an error whose code begins with STORE_ */
export async function carryOut(store: Store, operationId: number, clock: Clock, now: () => number): Promise<void> {
  for (;;) {
    const { stepped, nextMs } = await store.operations.step(now(), operationId);
    if (stepped !== null) continue;
    if ((await store.operations.find(operationId)).endedMs !== null) return;
    await pause(clock, Math.max(lookMs, nextMs === null ? 0 : nextMs - now()));
  }
}
