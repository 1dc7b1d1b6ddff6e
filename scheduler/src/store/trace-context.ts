import type { EnqueueWrite, RunOrigin } from "../run/run-record.ts";
import type { RunStore } from "../run/run-store.ts";
import type { StoreClock } from "./store-clock.ts";

/**
 * By which a remote worker says that it traces: a header, not a field, for a server that does not know it yet leaves it
 * alone. Here, and not in the protocol's contract, which a worker need not load with all that checks it.
 */
export const tracesHeader = "carillon-traces";

/** A trace that lasts longer is two: what was begun for later is linked to what began it. */
const oneTraceMs = 60_000;

/** From where a run's spans go on: its parent and links, each as W3C's traceparent writes it. */
export interface RunTrace {
  parent: string | null;
  links: string[];
}

/** A span that runs begun by its run go on from. */
export interface RunSpan {
  runId: number;
  fence: number;
  context: string;
}

/** Who knows from where runs come: the store, or of a remote worker its server. */
export interface TraceSource {
  /** Of those that come from somewhere. */
  tracesOf(runs: { runId: number; dueMs: number }[]): Promise<Map<number, RunTrace>>;
  /** Before what these begin is made. */
  leave(spans: RunSpan[]): Promise<void>;
}

/** What makes a span of an enqueue, where somebody traces. */
export interface EnqueueTracing {
  /**
   * @param task null: more than one
   * @param send what enqueues, with the text that stands for the span
   * @param parent that came with a request; default what is active
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

/** Pure. One that is due soon after it was begun by one goes on in its trace; any other begins one, with links. */
export function traceOf(origins: RunOrigin[], dueMs: number): RunTrace {
  const [only] = origins;
  if (only && origins.length === 1 && !only.apart && dueMs - only.createdMs <= oneTraceMs)
    return { parent: only.context, links: [] };
  return { parent: null, links: origins.map(({ context }) => context) };
}

/** A request's header, where it is one that says something. */
export function traceparentOf(header: string | string[] | undefined): string | undefined {
  if (typeof header !== "string") return undefined;
  const [, version, ids, trace, span, flags] =
    /^([0-9a-f]{2})-(([0-9a-f]{32})-([0-9a-f]{16}))-([0-9a-f]{2})(?:-.*)?$/.exec(header) ?? [];
  if (version === undefined || version === "ff" || /^0+$/.test(trace as string) || /^0+$/.test(span as string))
    return undefined;
  // Of a later version than ours only what ours has is carried on.
  return `00-${ids}-${flags}`;
}

export const withContext = (writes: EnqueueWrite[], context: string | undefined): EnqueueWrite[] =>
  context === undefined ? writes : writes.map((write) => ({ ...write, context }));
