import type { CarillonError } from "../errors.ts";
import { isCarillonError, messageOf } from "../errors.ts";
import { Continuation } from "../flow.ts";
import { jsonText } from "../json.ts";
import { limits } from "../limits.ts";
import type { Random } from "../random.ts";
import { retryDelay } from "../retry.ts";
import type { Settlement, Verdict } from "../store.ts";
import type { HeldRun } from "./held-run.ts";

/** Trying again cannot help these. */
const final = ["PAYLOAD_INVALID", "COMMAND_NOT_ALLOWED", "HTTP_NOT_ALLOWED", "HTTP_REFUSED"] as const;
const stackLength = 4_000;
const codeLength = 100;

/** Of most runs; one for all of them. */
const withoutResult: Verdict = Object.freeze({ kind: "ended", outcome: "succeeded", result: null, error: null });

export function succeeded(run: HeldRun, value: unknown): Verdict {
  if (value === undefined) return withoutResult;
  let result: string | null = null;
  try {
    if (value instanceof Continuation)
      return { kind: "ended", outcome: "succeeded", result: null, error: null, onward: value.onward };
    result = jsonText(value, `run ${run.id}: result`);
  } catch (error) {
    // The work is done; a result that cannot be kept does not undo it.
    run.log.warn(`the result was not kept: ${messageOf(error)}`);
  }
  return { kind: "ended", outcome: "succeeded", result, error: null };
}

/** What follows from a throw: another try while the task's policy has one, cancelled if that was why, else failed. */
export function failed(run: HeldRun, thrown: unknown, nowMs: number, random: Random): Verdict {
  const reason = run.abortReason;
  // A handler that stops because it was told to usually throws something of its own; the cause is what told it.
  const error = errorText(reason ?? thrown, reason === undefined || reason === thrown ? undefined : thrown);
  if (reason?.code === "CANCELLED") return { kind: "ended", outcome: "cancelled", result: null, error };
  // Stopped by us and not by its own fault: what a lost worker means for this task.
  if (reason?.code === "STOPPED" || reason?.code === "SESSION_LOST") {
    const { onWorkerLost } = run.known.definition;
    return onWorkerLost === "fail"
      ? { kind: "ended", outcome: "failed", result: null, error, cutShort: true }
      : { kind: "retry", dueMs: nowMs, error, cutShort: true, ...(onWorkerLost === "ask" ? { ask: true } : {}) };
  }
  const { retry } = run.known.definition;
  const own = ownError(thrown);
  const askedMs = own?.retryAfterMs ?? 0;
  const isFinal = askedMs === Number.POSITIVE_INFINITY || final.some((code) => own?.code === code);
  const delay = isFinal ? null : retryDelay(retry, run.attempt, random);
  if (delay === null) return { kind: "ended", outcome: "failed", result: null, error };
  const dueMs = nowMs + Math.max(delay, Math.min(askedMs, retry.maxDelayMs));
  return { kind: "retry", dueMs, error, ...(askedMs > 0 ? { askedMs } : {}) };
}

function ownError(thrown: unknown): CarillonError | undefined {
  try {
    return isCarillonError(thrown) ? thrown : undefined;
  } catch {
    // It throws when it is asked what it is.
    return undefined;
  }
}

export function cancelled(reason: CarillonError): Verdict {
  return { kind: "ended", outcome: "cancelled", result: null, error: errorText(reason) };
}

/** Bounded before anything else: what a handler throws may be as large as a string can be. */
const textOf = (thrown: unknown): string => clean(messageOf(thrown).slice(0, limits.errorMessageLength));

function errorText(thrown: unknown, also?: unknown): string {
  return JSON.stringify({ ...errorParts(thrown), ...(also === undefined ? {} : { thrown: textOf(also) }) });
}

/** What is kept of anything thrown; a CarillonError says all by its code and message. */
export function errorParts(thrown: unknown): { code?: string; message: string; stack?: string } {
  const { code, stack } = partsOf(thrown);
  return {
    ...(typeof code === "string" ? { code: clean(code.slice(0, codeLength)) } : {}),
    message: textOf(thrown),
    ...(typeof stack === "string" && stack !== "" ? { stack: clean(stack.slice(0, stackLength)) } : {}),
  };
}

function partsOf(thrown: unknown): { code?: unknown; stack?: unknown } {
  try {
    const code = (thrown as { code?: unknown } | null | undefined)?.code;
    return { code, stack: thrown instanceof Error && !isCarillonError(thrown) ? thrown.stack : undefined };
  } catch {
    // Made so that it throws when it is looked at: its text says that.
    return {};
  }
}

/** PostgreSQL's jsonb holds no NUL and no lone surrogate; UTF-8 has none of the latter. */
function clean(text: string): string {
  return Buffer.from(text.replaceAll("\0", "\ufffd")).toString();
}

export function settlementOf({ claim, startedMs, known }: HeldRun, verdict: Verdict, endedMs: number): Settlement {
  const { runId, fence, attempt, taskId, linked } = claim;
  if (known.definition.history === "failures")
    return { runId, fence, attempt, taskId, linked, unkept: true, startedMs, endedMs, verdict };
  return { runId, fence, attempt, taskId, linked, startedMs, endedMs, verdict };
}
