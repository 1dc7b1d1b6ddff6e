import type { Histogram } from "prom-client";
import type { RunNotice } from "../run/handler.ts";
import { latenessMs } from "../run/handling/lateness.ts";

/** The context of a span, as OpenTelemetry has it. */
interface SpanContext {
  traceId: string;
  traceFlags: number;
}

/** Runs that started here and whose end is not known yet, at most: the ends of dropped runs never are. */
const underWayMost = 10_000;
const sampled = 1;

/** Finds the trace of each observation of a run, so that a graph leads to it. Only while an SDK for traces is registered. */
export class Exemplars {
  readonly #lateness: Histogram;
  /** By run: how late its first try started, in seconds; null: it is a later try. */
  readonly #underWay = new Map<number, { late: number | null; labels?: { trace_id: string; run_id: string } }>();

  constructor(lateness: Histogram) {
    this.#lateness = lateness;
  }

  /** The run starts; its span begins afterwards. */
  started({ runId, attempt, readyMs, startedMs }: RunNotice): void {
    this.#underWay.set(runId, { late: attempt === 1 ? latenessMs({ dueMs: readyMs }, startedMs) / 1_000 : null });
    for (const [oldest] of this.#underWay) {
      if (this.#underWay.size <= underWayMost) break;
      this.#underWay.delete(oldest);
    }
  }

  /** The span of a run has begun. */
  spanned(runId: number, { traceId, traceFlags }: SpanContext): void {
    const run = this.#underWay.get(runId);
    // A trace that is not sampled is recorded nowhere.
    if (!run || (traceFlags & sampled) === 0) return;
    run.labels = { trace_id: traceId, run_id: String(runId) };
    // The lateness was counted as the run started, before its trace was known. Declared nowhere, but no private method.
    if (run.late !== null) (this.#lateness as unknown as Updated).updateExemplar({}, run.late, run.labels);
  }

  /** The labels of an attempt that has ended. */
  ended(runId: number): Record<string, string> {
    const labels = this.#underWay.get(runId)?.labels ?? {};
    this.#underWay.delete(runId);
    return labels;
  }
}

interface Updated {
  updateExemplar(labels: object, value: number, exemplarLabels: Record<string, string>): void;
}
