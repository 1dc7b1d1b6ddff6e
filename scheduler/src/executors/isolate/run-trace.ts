import { isTraced, spanContextOf, traceText } from "../../base/trace-text.ts";

const api = () => import("@opentelemetry/api");

/** The active span as a W3C traceparent; undefined if no OpenTelemetry SDK is registered or no span is active. */
export async function activeTrace(): Promise<string | undefined> {
  if (!isTraced()) return undefined;
  const { trace, isSpanContextValid } = await api();
  const span = trace.getActiveSpan()?.spanContext();
  return span && isSpanContextValid(span) ? traceText(span) : undefined;
}

/** Runs `work` with the given span as the active span, if an OpenTelemetry SDK is registered in this thread or process. */
export async function withinTrace<Result>(text: string | undefined, work: () => Result): Promise<Awaited<Result>> {
  const span = text === undefined || !isTraced() ? null : spanContextOf(text);
  if (span === null) return await work();
  const { context, trace, ROOT_CONTEXT } = await api();
  return await context.with(trace.setSpanContext(ROOT_CONTEXT, span), work);
}
