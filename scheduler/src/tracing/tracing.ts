import type { Context, Link, Span } from "@opentelemetry/api";
import { isCarillonError, messageOf } from "../errors.ts";
import type { Handler, Run } from "../handler.ts";
import type { Redactor } from "../redactor.ts";
import type { ClaimStore, RunOrigin, RunStore } from "../store.ts";
import { version } from "../version.ts";

type Api = typeof import("@opentelemetry/api");

/** A trace that lasts longer is two: what was enqueued for later is linked to whoever enqueued it. */
const oneTraceMs = 60_000;
/** Of runs that were claimed and never started here. */
const knownMost = 50_000;
const messageLength = 500;

/** Where an SDK leaves what it registers; asked before anything of OpenTelemetry is loaded. */
const registered = Symbol.for("opentelemetry.js.api.1");

/** @returns undefined where no SDK is registered: then nothing is loaded, written or asked for */
export async function openTracing(runs: RunStore, redactor: Redactor): Promise<Tracing | undefined> {
  const there = (globalThis as { [registered]?: { trace?: unknown } })[registered];
  if (there?.trace === undefined) return undefined;
  return new Tracing(await import("@opentelemetry/api"), runs, redactor);
}

/**
 * Spans from enqueue to run. Whoever enqueues leaves in the store, beside the run, which span it was (`run_origin`); whoever runs it
 * goes on from there.
 */
export class Tracing {
  readonly #api: Api;
  readonly #runs: RunStore;
  readonly #redactor: Redactor;
  readonly #known = new Map<number, RunOrigin | null>();
  #asking: { runIds: number[]; answer: Promise<void> } | undefined;

  constructor(api: Api, runs: RunStore, redactor: Redactor) {
    this.#api = api;
    this.#runs = runs;
    this.#redactor = redactor;
  }

  get #tracer() {
    return this.#api.trace.getTracer("carillon", version);
  }

  /** @param send what enqueues, with the text that stands for the span */
  async enqueue<Made extends { runId: number }>(
    task: string,
    send: (context: string | undefined) => Promise<Made>,
  ): Promise<Made> {
    const { SpanKind, SpanStatusCode } = this.#api;
    const span = this.#tracer.startSpan(`enqueue ${task}`, {
      kind: SpanKind.PRODUCER,
      attributes: {
        "messaging.system": "carillon",
        "messaging.operation.type": "send",
        "messaging.destination.name": task,
      },
    });
    try {
      const made = await send(this.#textOf(span));
      span.setAttribute("carillon.run", made.runId);
      return made;
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: this.#shown(error) });
      throw error;
    } finally {
      span.end();
    }
  }

  /** Asks with each claim from where its runs come, so that none waits for it when it is due. */
  around<Claims extends Omit<ClaimStore, "reclaim">>(claims: Claims): Claims {
    const { claim, turn } = claims;
    return Object.assign(Object.create(claims), {
      claim: async (...given: Parameters<typeof claim>) => {
        const answer = await claim.apply(claims, given);
        await this.#fetch(answer.runs.map(({ runId }) => runId));
        return answer;
      },
      turn: async (...given: Parameters<typeof turn>) => {
        const answer = await turn.apply(claims, given);
        await this.#fetch(answer.runs.map(({ runId }) => runId));
        return answer;
      },
    });
  }

  /** The handler in a span of its own, which is the active one while it runs. */
  handler(handler: Handler): Handler {
    return async (run, payload) => {
      // Claimed in the statement that made it, it was not asked about.
      if (!this.#known.has(run.id)) await this.#soon(run.id);
      const origin = this.#known.get(run.id) ?? null;
      this.#known.delete(run.id);
      const { context, trace, SpanStatusCode } = this.#api;
      const span = this.#spanOf(run, origin);
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

  #spanOf(run: Run, origin: RunOrigin | null): Span {
    const { ROOT_CONTEXT, SpanKind, trace } = this.#api;
    const from = origin && contextOf(origin.context);
    const isChild = from && run.due.getTime() - (origin?.createdMs ?? 0) <= oneTraceMs;
    const parent: Context = isChild ? trace.setSpanContext(ROOT_CONTEXT, from) : ROOT_CONTEXT;
    const links: Link[] = from && !isChild ? [{ context: from }] : [];
    return this.#tracer.startSpan(
      `run ${run.task}`,
      {
        kind: SpanKind.CONSUMER,
        links,
        attributes: {
          ...{ "messaging.system": "carillon", "messaging.operation.type": "process" },
          ...{ "messaging.destination.name": run.task, "carillon.run": run.id, "carillon.attempt": run.attempt },
          ...(run.slot === null ? {} : { "carillon.slot": run.slot.toISOString() }),
        },
      },
      parent,
    );
  }

  /** As W3C's traceparent writes it; undefined: nobody would go on from there. */
  #textOf(span: Span): string | undefined {
    const given = span.spanContext();
    if (!this.#api.trace.isSpanContextValid(given)) return undefined;
    const { traceId, spanId, traceFlags } = given;
    return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
  }

  /** All that start in one turn of the event loop ask together. */
  #soon(runId: number): Promise<void> {
    if (this.#asking) {
      this.#asking.runIds.push(runId);
      return this.#asking.answer;
    }
    const runIds = [runId];
    const answer = Promise.resolve().then(() => {
      this.#asking = undefined;
      return this.#fetch(runIds);
    });
    this.#asking = { runIds, answer };
    return answer;
  }

  /** A trace is not worth a run: with the store away there is none. */
  async #fetch(runIds: number[]): Promise<void> {
    const unknown = runIds.filter((runId) => !this.#known.has(runId));
    if (unknown.length === 0) return;
    const found = await this.#runs.origins(unknown).catch(() => []);
    for (const runId of unknown) this.#known.set(runId, null);
    for (const origin of found) this.#known.set(origin.runId, origin);
    for (const [runId] of this.#known) {
      if (this.#known.size <= knownMost) break;
      this.#known.delete(runId);
    }
  }

  #shown(error: unknown): string {
    return this.#redactor.text(messageOf(error).slice(0, messageLength));
  }
}

function contextOf(text: string) {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
