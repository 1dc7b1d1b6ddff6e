import type { EnqueueWrite, RunOrigin } from "../run/run-record.ts";
import type { RunStore } from "../run/run-store.ts";
import type { StoreClock } from "./store-clock.ts";

/**
 * The header with which a remote worker announces that it records traces. It is a header and not a field of the body, because older servers
 * ignore unknown headers. It is defined here and not in the contract of the protocol, because a worker need not load the contract with all
 * its checks.
 */
export const tracesHeader = "carillon-traces";

/**
 * The longest time, in ms, between the creation of a run and its due time for which the run continues the trace. Runs due later begin their
 * own trace, with a link to the span that created them.
 */
const oneTraceMs = 60_000;

/** The context that a run's spans continue: its parent and its links, each in the format of the W3C header traceparent. */
export interface RunTrace {
  parent: string | null;
  links: string[];
}

/** The span of a run, which is continued by the runs that this run creates. */
export interface RunSpan {
  runId: number;
  fence: number;
  context: string;
}

/**
 * Reads the traces that runs continue, and stores the spans of runs. Implemented with the store (`storeTraces`), and in a remote
 * worker with polls to its server (`RemoteClaims`).
 */
export interface TraceSource {
  /** Returns the traces of these runs, by run number; runs without an origin are left out. */
  tracesOf(runs: { runId: number; dueMs: number }[]): Promise<Map<number, RunTrace>>;
  /** Stores these spans. Called before the runs that continue them are created. */
  leave(spans: RunSpan[]): Promise<void>;
}

/** Creates the span of an enqueue, if the application records traces. */
export interface EnqueueTracing {
  /**
   * Starts a span, calls `send`, and ends the span when `send` has settled. The span is not made active.
   * @param task the name of the task; null if the runs belong to several tasks
   * @param send enqueues the runs with the span's context as text; undefined if the span is invalid
   * @param parent the context of the HTTP request; used only if no span is active. Default: the active context
   */
  enqueue<Made>(
    task: string | null,
    send: (context: string | undefined) => Promise<Made>,
    parent?: string | undefined,
  ): Promise<Made>;
}

export const storeTraces = (runs: Pick<RunStore, "origins" | "leaveSpans">, storeClock: StoreClock): TraceSource => ({
  async tracesOf(some) {
    const due = new Map(some.map(({ runId, dueMs }) => [runId, dueMs]));
    const origins = new Map<number, RunOrigin[]>();
    for (const origin of await runs.origins([...due.keys()]))
      origins.set(origin.runId, [...(origins.get(origin.runId) ?? []), origin]);
    return new Map([...origins].map(([runId, all]) => [runId, traceOf(all, due.get(runId) as number)]));
  },
  async leave(spans) {
    await runs.leaveSpans(spans, storeClock.now());
  },
});

/**
 * Returns the trace of a run. The run continues the trace of its only origin, unless the origin is marked as `apart` or the run
 * is due more than `oneTraceMs` after its creation; otherwise it begins a new trace with links to all its origins.
 */
export function traceOf(origins: RunOrigin[], dueMs: number): RunTrace {
  const [only] = origins;
  if (only && origins.length === 1 && !only.apart && dueMs - only.createdMs <= oneTraceMs)
    return { parent: only.context, links: [] };
  return { parent: null, links: origins.map(({ context }) => context) };
}

/** Returns the value of a request's traceparent header in the format of version 00; undefined if the header is invalid. */
export function traceparentOf(header: string | string[] | undefined): string | undefined {
  if (typeof header !== "string") return undefined;
  const [, version, ids, trace, span, flags] =
    /^([0-9a-f]{2})-(([0-9a-f]{32})-([0-9a-f]{16}))-([0-9a-f]{2})(?:-.*)?$/.exec(header) ?? [];
  if (version === undefined || version === "ff" || /^0+$/.test(trace as string) || /^0+$/.test(span as string))
    return undefined;
  // A later version of traceparent may have further fields, which are not passed on.
  return `00-${ids}-${flags}`;
}

export const withContext = (writes: EnqueueWrite[], context: string | undefined): EnqueueWrite[] =>
  context === undefined ? writes : writes.map((write) => ({ ...write, context }));
