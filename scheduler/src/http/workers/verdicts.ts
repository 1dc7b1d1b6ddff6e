import type { GivenVerdict } from "../../api/worker-protocol.ts";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import { jsonText } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import type { Random } from "../../base/random.ts";
import type { Settlement, Verdict } from "../../run/claim-store.ts";
import { errorParts } from "../../run/error-parts.ts";
import type { Onward } from "../../run/flow.ts";
import { snoozedTooOften } from "../../run/handling/postponed.ts";
import { retryDelay } from "../../task/policies.ts";
import type { TaskDefinition } from "../../task/task.ts";
import type { Holding } from "./sessions.ts";

/** Replaces NUL and unpaired surrogates by U+FFFD, because PostgreSQL's jsonb type accepts neither. */
const clean = (text: string) => Buffer.from(text.replaceAll("\0", "\ufffd")).toString();

function errorText({ error, outcome }: GivenVerdict): string {
  const given = error ?? { message: outcome === "stopped" ? "the worker stopped" : `the worker said ${outcome}` };
  const parts = Object.entries(given).map(([name, value]) => [name, clean(value)]);
  return JSON.stringify(Object.fromEntries(parts));
}

interface Judging {
  definition: Pick<TaskDefinition, "retry" | "onWorkerLost"> | undefined;
  /** The attempt's number as the retry policy counts it: lost and postponed attempts are left out. */
  attempt: number;
  snoozes: number;
  nowMs: number;
  random: Random;
  /** Called with the reason if a result is not stored. */
  note: (message: string) => void;
  onward: Onward | CarillonError | undefined;
}

/**
 * Converts a worker's verdict to the form that the store writes. The task's retry policy is applied here, on the server, to decide whether
 * another attempt follows. If the result cannot be stored, the run still succeeds and `note` receives the reason. If the follow-up run that
 * the handler asked for cannot be created (`onward` is an error), the attempt counts as failed, as it does for a worker in this process.
 */
export function verdictOf(
  given: GivenVerdict,
  { definition, attempt, snoozes, nowMs, random, note, onward }: Judging,
): Verdict {
  const failed = (error: string): Verdict => {
    const delay = given.retry === false || !definition ? null : retryDelay(definition.retry, attempt, random);
    if (!definition || delay === null) return { kind: "ended", outcome: "failed", result: null, error };
    const retryInMs = given.outcome === "failed" ? given.retryInMs : undefined;
    if (retryInMs !== undefined) return { kind: "retry", dueMs: nowMs + retryInMs, error, inMs: retryInMs };
    const askedMs = Math.min(given.retryAfterMs ?? 0, definition.retry.maxDelayMs);
    return { kind: "retry", dueMs: nowMs + Math.max(delay, askedMs), error };
  };
  switch (given.outcome) {
    case "released":
      return { kind: "released" };
    case "succeeded": {
      if (onward instanceof CarillonError)
        return failed(JSON.stringify({ code: onward.code, message: clean(onward.message) }));
      let result: string | null = null;
      try {
        result = jsonText(given.result, `run ${given.runId}: result`);
      } catch (error) {
        if (!isCarillonError(error)) throw error;
        note(`the result was not kept: ${messageOf(error)}`);
      }
      return { kind: "ended", outcome: "succeeded", result, error: null, ...(onward ? { onward } : {}) };
    }
    case "cancelled":
      return { kind: "ended", outcome: "cancelled", result: null, error: errorText(given) };
    case "stopped":
      return !definition || definition.onWorkerLost === "fail"
        ? { kind: "ended", outcome: "failed", result: null, error: errorText(given) }
        : {
            kind: "retry",
            dueMs: nowMs,
            error: errorText(given),
            ask: definition.onWorkerLost === "ask",
            lost: given.error?.code === "SESSION_LOST",
          };
    case "failed":
      return failed(errorText(given));
    case "snoozed": {
      const { retryInMs: inMs = 0 } = given;
      if (snoozes < limits.snoozes) return { kind: "retry", dueMs: nowMs + inMs, error: null, inMs, snoozed: true };
      return failed(JSON.stringify(errorParts(snoozedTooOften())));
    }
  }
}

/**
 * Adds the claim's data and the times to a verdict. A worker reports its start and end as ages in ms; the resulting times are limited to
 * the period from the claim's time until now.
 */
export function settlementOf(
  sessionId: number,
  given: Pick<GivenVerdict, "runId" | "fence" | "startedAgoMs" | "endedAgoMs">,
  { taskId, attempt, linked, claimedMs }: Pick<Holding, "taskId" | "attempt" | "linked" | "claimedMs">,
  verdict: Verdict,
  nowMs: number,
): Settlement {
  const at = (agoMs: number) => Math.min(nowMs, Math.max(claimedMs, nowMs - agoMs));
  const endedMs = at(Math.min(given.endedAgoMs ?? 0, limits.writtenAgoMs));
  const startedMs = given.startedAgoMs === undefined ? null : Math.min(endedMs, at(given.startedAgoMs));
  const { runId, fence } = given;
  return { sessionId, runId, fence, attempt, taskId, linked, startedMs, endedMs, verdict };
}
