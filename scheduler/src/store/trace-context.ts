import type { EnqueueWrite, RunOrigin } from "../run/run-record.ts";
import type { RunStore } from "../run/run-store.ts";
import type { StoreClock } from "./store-clock.ts";

/**
 * The header with which a remote worker announces that it traces. It is a header and not a field, because an older server ignores unknown
 * headers. It is defined here and not in the protocol's contract, because a worker need not load the contract with all its checks.
 */
export const tracesHeader = "carillon-traces";

/**
 * A longer trace is split in two: runs that are due later than this begin a trace of their own, with a link to the span that began them.
 */
const oneTraceMs = 60_000;

/** The context that a run's spans continue: its parent and links, each as W3C's traceparent writes it. */
export interface RunTrace {
  parent: string | null;
  links: string[];
}

/** The span that runs begun by this run continue. */
export interface RunSpan {
  runId: number;
  fence: number;
  context: string;
}

/** Provides the origins of runs: the store, or for a remote worker its server. */
export interface TraceSource {
  /** The result contains only runs that have an origin. */
  tracesOf(runs: { runId: number; dueMs: number }[]): Promise<Map<number, RunTrace>>;
  /** Called before the runs that these spans begin are made. */
  leave(spans: RunSpan[]): Promise<void>;
}

/** Creates the span of an enqueue, if the application traces. */
export interface EnqueueTracing {
  /**
   * @param task null: the runs belong to several tasks
   * @param send enqueues the runs with the span's context as text
   * @param parent the context of the HTTP request; default: the active one
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
 * Pure function. A run that is due soon after its only origin began it continues that trace; any other run begins a new trace, with links.
 */
export function traceOf(origins: RunOrigin[], dueMs: number): RunTrace {
  const [only] = origins;
  if (only && origins.length === 1 && !only.apart && dueMs - only.createdMs <= oneTraceMs)
    return { parent: only.context, links: [] };
  return { parent: null, links: origins.map(({ context }) => context) };
}

/** Returns the header of a request, if it is valid. */
export function traceparentOf(header: string | string[] | undefined): string | undefined {
  if (typeof header !== "string") return undefined;
  const [, version, ids, trace, span, flags] =
    /^([0-9a-f]{2})-(([0-9a-f]{32})-([0-9a-f]{16}))-([0-9a-f]{2})(?:-.*)?$/.exec(header) ?? [];
  if (version === undefined || version === "ff" || /^0+$/.test(trace as string) || /^0+$/.test(span as string))
    return undefined;
  // For a later traceparent version, only the fields of version 00 are passed on.
  return `00-${ids}-${flags}`;
}

export const withContext = (writes: EnqueueWrite[], context: string | undefined): EnqueueWrite[] =>
  context === undefined ? writes : writes.map((write) => ({ ...write, context }));
