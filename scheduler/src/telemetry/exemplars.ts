import type { Histogram } from "prom-client";
import type { RunNotice } from "../run/handler.ts";
import { latenessMs } from "../run/handling/lateness.ts";

/** The part of OpenTelemetry's span context that is used here. */
interface SpanContext {
  traceId: string;
  traceFlags: number;
}

/**
 * The most entries of `#underWay`. There must be a limit, because the end of a run that this process dropped is never reported.
 */
const underWayMost = 10_000;
const sampled = 1;

/**
 * Links observations of runs to the traces of these runs, so that a graph leads to a trace. Used only while an SDK for traces is
 * registered.
 */
export class Exemplars {
  readonly #lateness: Histogram;
  /** By run number: `late` is how late the first attempt started, in seconds; null for a later attempt. */
  readonly #underWay = new Map<number, { late: number | null; labels?: { trace_id: string; run_id: string } }>();

  constructor(lateness: Histogram) {
    this.#lateness = lateness;
  }

  /** Called when a run has started, before its span begins. */
  started({ runId, attempt, readyMs, startedMs }: RunNotice): void {
    this.#underWay.set(runId, { late: attempt === 1 ? latenessMs({ dueMs: readyMs }, startedMs) / 1_000 : null });
    for (const [oldest] of this.#underWay) {
      if (this.#underWay.size <= underWayMost) break;
      this.#underWay.delete(oldest);
    }
  }

  /** Called when the span of a run has begun. */
  spanned(runId: number, { traceId, traceFlags }: SpanContext): void {
    const run = this.#underWay.get(runId);
    // A trace that is not sampled is not recorded, so an exemplar could not lead to it.
    if (!run || (traceFlags & sampled) === 0) return;
    run.labels = { trace_id: traceId, run_id: String(runId) };
    // The lateness was observed when the run started, before its trace was known, so the exemplar is added now. prom-client does not
    // declare `updateExemplar`, which is not a private method.
    if (run.late !== null) (this.#lateness as unknown as Updated).updateExemplar({}, run.late, run.labels);
  }

  /** Called when an attempt has ended. @returns the labels of its exemplar; empty if its trace is unknown or not sampled */
  ended(runId: number): Record<string, string> {
    const labels = this.#underWay.get(runId)?.labels ?? {};
    this.#underWay.delete(runId);
    return labels;
  }
}

interface Updated {
  updateExemplar(labels: object, value: number, exemplarLabels: Record<string, string>): void;
}
