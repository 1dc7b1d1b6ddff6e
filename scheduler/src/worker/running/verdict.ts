import type { CarillonError } from "../../base/errors.ts";
import { isCarillonError, messageOf } from "../../base/errors.ts";
import { jsonText } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import type { Random } from "../../base/random.ts";
import type { Settlement, Verdict } from "../../run/claim-store.ts";
import { errorParts, textOf } from "../../run/error-parts.ts";
import { Continuation } from "../../run/flow.ts";
import { isPostponed, isRetryIn, type RetryIn, Snooze, snoozedTooOften } from "../../run/handling/postponed.ts";
import { retryDelay } from "../../task/policies.ts";
import type { HeldRun } from "./held-run.ts";

/** Error codes after which the run is not retried, because a retry would fail in the same way. */
const final = ["PAYLOAD_INVALID", "COMMAND_NOT_ALLOWED", "HTTP_NOT_ALLOWED", "HTTP_REFUSED"] as const;

/** The verdict of a run that succeeded without a result. Most runs have this verdict, so they share one object. */
const withoutResult: Verdict = Object.freeze({ kind: "ended", outcome: "succeeded", result: null, error: null });

/**
 * Returns the verdict on an attempt whose handler returned `value`. If the run was aborted by a cancellation before the handler returned,
 * the run is cancelled, unless the handler has completed it in its own transaction.
 */
export function succeeded(run: HeldRun, value: unknown): Verdict {
  if (run.abortReason?.code === "CANCELLED" && !run.completed)
    return cancelled(run.abortReason, `the handler returned ${Math.round(run.toldForMs)} ms after it was told to stop`);
  if (value === undefined) return withoutResult;
  let result: string | null = null;
  try {
    if (value instanceof Continuation)
      return { kind: "ended", outcome: "succeeded", result: null, error: null, onward: value.onward };
    result = jsonText(value, `run ${run.id}: result`);
  } catch (error) {
    // The handler has done its work, so the run succeeds even if its result cannot be stored.
    run.log.warn(`the result was not kept: ${messageOf(error)}`);
  }
  return { kind: "ended", outcome: "succeeded", result, error: null };
}

/**
 * Returns the verdict on an attempt whose handler threw, or returned `run.retryIn` or `run.snooze`. After a cancellation the run
 * is cancelled; after a snooze it waits, unless it has used up its snoozes; if the worker stopped or lost its session, the task's
 * `onWorkerLost` decides. Otherwise the run is retried if the retry policy has an attempt left and the error is not final, and
 * else fails.
 */
export function failed(run: HeldRun, thrown: unknown, nowMs: number, random: Random): Verdict {
  const reason = run.abortReason;
  const own = ownError(thrown);
  if (own instanceof Snooze && reason?.code !== "CANCELLED") return snoozed(run, own, nowMs, random);
  const retryIn = own instanceof Error && isRetryIn(own) ? own : undefined;
  const cause = retryIn?.cause ?? thrown;
  // A handler that stops because of its abort usually throws its own error, so the reason for the abort is recorded as the cause.
  const error = errorText(reason ?? cause, reason === undefined || reason === thrown ? undefined : cause);
  if (reason?.code === "CANCELLED") return { kind: "ended", outcome: "cancelled", result: null, error };
  // The worker stopped or lost its session, which is not the run's fault, so the task's `onWorkerLost` decides.
  if (reason?.code === "STOPPED" || reason?.code === "SESSION_LOST") {
    const { onWorkerLost } = run.known.definition;
    return onWorkerLost === "fail"
      ? { kind: "ended", outcome: "failed", result: null, error, cutShort: true }
      : {
          kind: "retry",
          dueMs: nowMs,
          error,
          cutShort: true,
          lost: reason.code === "SESSION_LOST",
          ...(onWorkerLost === "ask" ? { ask: true } : {}),
        };
  }
  const { retry } = run.policies;
  const coded = isCarillonError(own) ? own : undefined;
  const askedMs = coded?.retryAfterMs ?? 0;
  const isFinal = askedMs === Number.POSITIVE_INFINITY || final.some((code) => coded?.code === code);
  const { losses = 0, snoozes = 0 } = run.claim;
  const delay = isFinal ? null : retryDelay(retry, run.attempt - losses - snoozes, random);
  if (delay === null) return { kind: "ended", outcome: "failed", result: null, error };
  if (retryIn) return { kind: "retry", dueMs: nowMs + retryIn.retryInMs, error, inMs: retryIn.retryInMs };
  const dueMs = nowMs + Math.max(delay, Math.min(askedMs, retry.maxDelayMs));
  return { kind: "retry", dueMs, error, ...(askedMs > 0 ? { askedMs } : {}) };
}

function snoozed(run: HeldRun, { forMs }: Snooze, nowMs: number, random: Random): Verdict {
  if ((run.claim.snoozes ?? 0) >= limits.snoozes) return failed(run, snoozedTooOften(), nowMs, random);
  return { kind: "retry", dueMs: nowMs + forMs, error: null, inMs: forMs, snoozed: true };
}

function ownError(thrown: unknown): CarillonError | RetryIn | Snooze | undefined {
  try {
    return isCarillonError(thrown) || isPostponed(thrown) ? thrown : undefined;
  } catch {
    // A hostile value (for example a proxy) throws when its properties are read; it is treated as an unknown error.
    return undefined;
  }
}

export function cancelled(reason: CarillonError, also?: string): Verdict {
  return { kind: "ended", outcome: "cancelled", result: null, error: errorText(reason, also) };
}

function errorText(thrown: unknown, also?: unknown): string {
  return JSON.stringify({ ...errorParts(thrown), ...(also === undefined ? {} : { thrown: textOf(also) }) });
}

export function settlementOf({ claim, startedMs, known }: HeldRun, verdict: Verdict, endedMs: number): Settlement {
  const { runId, fence, attempt, taskId, linked } = claim;
  if (known.definition.history === "failures")
    return { runId, fence, attempt, taskId, linked, unkept: true, startedMs, endedMs, verdict };
  return { runId, fence, attempt, taskId, linked, startedMs, endedMs, verdict };
}
