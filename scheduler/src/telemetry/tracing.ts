import type { Context, Link, Span, SpanContext } from "@opentelemetry/api";
import type { Redactor } from "../access/secrets/redactor.ts";
import { isCarillonError, messageOf } from "../base/errors.ts";
import { isTraced, spanContextOf, traceText } from "../base/trace-text.ts";
import { version } from "../base/version.ts";
import type { ClaimStore, Settlement } from "../run/claim-store.ts";
import type { RunFlow } from "../run/flow.ts";
import type { Handler, Run } from "../run/handler.ts";
import type { RunStore } from "../run/run-store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import {
  type EnqueueTracing,
  type RunSpan,
  type RunTrace,
  storeTraces,
  type TraceSource,
} from "../store/trace-context.ts";

type Api = typeof import("@opentelemetry/api");

/** The limit of each cache: of runs that were claimed and never started here, and of runs that started here and were never settled. */
const knownMost = 50_000;
const messageLength = 500;

export const openStoreTracing = (runs: RunStore, storeClock: StoreClock, redactor: Redactor) =>
  openTracing(storeTraces(runs, storeClock), redactor);

/** Loads tracing. @returns undefined if the application has registered no SDK; then tracing writes and queries nothing */
export async function openTracing(source: TraceSource, redactor: Redactor): Promise<Tracing | undefined> {
  if (!isTraced()) return undefined;
  return new Tracing(await import("@opentelemetry/api"), source, redactor);
}

/**
 * Creates spans from an enqueue to its run, and from a run to the runs that it creates. The enqueuing process stores its span in
 * `run_origin`. A run that creates others stores its own span in `run_span` before they exist. The process that executes a run continues
 * its trace.
 */
export class Tracing implements EnqueueTracing {
  readonly #api: Api;
  readonly #source: TraceSource;
  readonly #redactor: Redactor;
  /** Called when the span of a run has begun. */
  onSpan: ((runId: number, context: SpanContext) => void) | undefined;
  readonly #known = new Map<number, RunTrace | null>();
  /** The span of each run between its handler's start and its verdict, by fence. It is stored if the run creates others. */
  readonly #spans = new Map<number, RunSpan & { left: boolean }>();
  #asking: { runs: { runId: number; dueMs: number }[]; answer: Promise<void> } | undefined;

  constructor(api: Api, source: TraceSource, redactor: Redactor) {
    this.#api = api;
    this.#source = source;
    this.#redactor = redactor;
  }

  get #tracer() {
    return this.#api.trace.getTracer("carillon", version);
  }

  async enqueue<Made>(
    task: string | null,
    send: (context: string | undefined) => Promise<Made>,
    parent?: string,
  ): Promise<Made> {
    const { SpanKind, SpanStatusCode, context, trace, ROOT_CONTEXT } = this.#api;
    const from = parent === undefined ? null : spanContextOf(parent);
    const span = this.#tracer.startSpan(
      task === null ? "enqueue" : `enqueue ${task}`,
      {
        kind: SpanKind.PRODUCER,
        attributes: {
          "messaging.system": "carillon",
          "messaging.operation.type": "send",
          ...(task === null ? {} : { "messaging.destination.name": task }),
        },
      },
      // Instrumentation of HTTP, if there is any, has already read the header and made its own span active; then this span is the parent.
      from && !trace.getSpan(context.active()) ? trace.setSpanContext(ROOT_CONTEXT, from) : context.active(),
    );
    try {
      const made = await send(this.#textOf(span));
      const { runId } = made as { runId?: unknown };
      if (typeof runId === "number") span.setAttribute("carillon.run", runId);
      if (Array.isArray(made)) span.setAttribute("messaging.batch.message_count", made.length);
      return made;
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: this.#shown(error) });
      throw error;
    } finally {
      span.end();
    }
  }

  /**
   * Wraps the store of claims: before a claim returns, queries the origins of its runs, so that no due run waits for its origin;
   * before a verdict is sent, stores the span of its run if the verdict may create other runs.
   */
  around<Claims extends Omit<ClaimStore, "reclaim">>(claims: Claims): Claims {
    const { claim, turn, settle, settleIn } = claims;
    return withOwn(claims, {
      claim: async (...given: Parameters<typeof claim>) => {
        const answer = await claim.apply(claims, given);
        await this.#fetch(answer.runs);
        return answer;
      },
      turn: async (...given: Parameters<typeof turn>) => {
        const answer = await turn.apply(claims, given);
        await this.#fetch(answer.runs);
        return answer;
      },
      settle: async (...given: Parameters<typeof settle>) => {
        await this.#leaveOf(given[1]);
        return settle.apply(claims, given);
      },
      settleIn: async (...given: Parameters<typeof settleIn>) => {
        await this.#leaveOf([given[2]]);
        return settleIn.apply(claims, given);
      },
    });
  }

  /** Wraps the run flow, so that a spawned run continues the trace of the run that spawns it. */
  flow(flow: RunFlow): RunFlow {
    const { spawn } = flow;
    return withOwn(flow, {
      spawn: async (...given: Parameters<typeof spawn>) => {
        await this.#leave([given[0].fence]);
        return spawn.apply(flow, given);
      },
    });
  }

  /** Wraps a handler so that it runs in its own span, which is active meanwhile. */
  handler(handler: Handler): Handler {
    return async (run, payload) => {
      // If the statement that inserted the run also claimed it, its origin has not been queried yet.
      if (!this.#known.has(run.id)) await this.#soon(run);
      const origin = this.#known.get(run.id) ?? null;
      this.#known.delete(run.id);
      const { context, trace, SpanStatusCode } = this.#api;
      const span = this.#spanOf(run, origin);
      this.onSpan?.(run.id, span.spanContext());
      const text = this.#textOf(span);
      if (text !== undefined)
        this.#spans.set(run.fence, { runId: run.id, fence: run.fence, context: text, left: false });
      trim(this.#spans);
      try {
        return await context.with(trace.setSpan(this.#api.ROOT_CONTEXT, span), () => handler(run, payload));
      } catch (error) {
        const message = this.#shown(error);
        const type = isCarillonError(error) ? error.code : error instanceof Error ? error.name : typeof error;
        span.addEvent("exception", { "exception.type": type, "exception.message": message });
        span.setStatus({ code: SpanStatusCode.ERROR, message });
        throw error;
      } finally {
        span.end();
      }
    };
  }

  #spanOf(run: Run, origin: RunTrace | null): Span {
    const { ROOT_CONTEXT, SpanKind, trace } = this.#api;
    const from = origin?.parent ? spanContextOf(origin.parent) : null;
    const parent: Context = from ? trace.setSpanContext(ROOT_CONTEXT, from) : ROOT_CONTEXT;
    const links = (origin?.links ?? []).flatMap((text): Link[] => {
      const linked = spanContextOf(text);
      return linked ? [{ context: linked }] : [];
    });
    return this.#tracer.startSpan(
      `run ${run.task}`,
      {
        kind: SpanKind.CONSUMER,
        links,
        attributes: {
          "messaging.system": "carillon",
          "messaging.operation.type": "process",
          "messaging.destination.name": run.task,
          "carillon.run": run.id,
          "carillon.attempt": run.attempt,
          ...(run.slot === null ? {} : { "carillon.slot": run.slot.toISOString() }),
        },
      },
      parent,
    );
  }

  /** Returns the span as a traceparent; undefined if the span is invalid, so that no trace can continue from it. */
  #textOf(span: Span): string | undefined {
    const given = span.spanContext();
    if (!this.#api.trace.isSpanContextValid(given)) return undefined;
    return traceText(given);
  }

  /** Queries the origin of a run that starts. Runs that start before the query is sent, in a microtask, share it. */
  #soon({ id: runId, due }: Run): Promise<void> {
    const run = { runId, dueMs: due.getTime() };
    if (this.#asking) {
      this.#asking.runs.push(run);
      return this.#asking.answer;
    }
    const runs = [run];
    const answer = Promise.resolve().then(() => {
      this.#asking = undefined;
      return this.#fetch(runs);
    });
    this.#asking = { runs, answer };
    return answer;
  }

  /**
   * Queries the origins of runs. Errors are ignored, because a missing trace must not delay a run; such runs begin a trace of their own.
   */
  async #fetch(runs: { runId: number; dueMs: number }[]): Promise<void> {
    const unknown = runs.filter(({ runId }) => !this.#known.has(runId));
    if (unknown.length === 0) return;
    const found = await this.#source.tracesOf(unknown).catch(() => new Map<number, RunTrace>());
    for (const { runId } of unknown) this.#known.set(runId, found.get(runId) ?? null);
    trim(this.#known);
  }

  /**
   * Stores the spans of runs whose verdict may create another run, so that the worker of that run finds its origin. Removes the spans of
   * all these claims from the cache.
   */
  async #leaveOf(settlements: Settlement[]): Promise<void> {
    const begins = ({ linked, verdict }: Settlement) =>
      verdict.kind === "ended" && (linked || verdict.onward !== undefined);
    await this.#leave(settlements.filter(begins).map(({ fence }) => fence));
    for (const { fence } of settlements) this.#spans.delete(fence);
  }

  async #leave(fences: number[]): Promise<void> {
    const spans = fences.flatMap((fence) => this.#spans.get(fence) ?? []).filter(({ left }) => !left);
    if (spans.length === 0) return;
    for (const span of spans) span.left = true;
    // If this fails, the following runs begin their own traces, and are executed as usual.
    await this.#source.leave(spans).catch(() => undefined);
  }

  #shown(error: unknown): string {
    return this.#redactor.text(messageOf(error).slice(0, messageLength));
  }
}

/**
 * Returns the target with some of its methods replaced. It is a proxy, because inherited methods could not access the private fields of the
 * target's class.
 */
export function withOwn<Target extends object>(target: Target, own: object): Target {
  return new Proxy(target, {
    get(_, name) {
      if (Object.hasOwn(own, name)) return Reflect.get(own, name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Removes the oldest entries beyond `knownMost`. */
function trim(map: Map<number, unknown>): void {
  for (const [key] of map) {
    if (map.size <= knownMost) break;
    map.delete(key);
  }
}
