/** The global symbol under which an OpenTelemetry SDK registers; read before any OpenTelemetry code is loaded. */
const registered = Symbol.for("opentelemetry.js.api.1");

export const isTraced = (): boolean =>
  (globalThis as { [registered]?: { trace?: unknown } })[registered]?.trace !== undefined;

interface SpanParts {
  traceId: string;
  spanId: string;
  traceFlags: number;
}

/** A span's context in the notation of W3C's traceparent. */
export const traceText = ({ traceId, spanId, traceFlags }: SpanParts): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;

/** The span's context in a traceparent; null: the text is no traceparent. */
export function spanContextOf(text: string): (SpanParts & { isRemote: true }) | null {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
