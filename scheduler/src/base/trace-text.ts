/** The global symbol under which an OpenTelemetry SDK registers. It is read directly, so that no OpenTelemetry code has to be loaded. */
const registered = Symbol.for("opentelemetry.js.api.1");

export const isTraced = (): boolean =>
  (globalThis as { [registered]?: { trace?: unknown } })[registered]?.trace !== undefined;

export const isMetered = (): boolean =>
  (globalThis as { [registered]?: { metrics?: unknown } })[registered]?.metrics !== undefined;

interface SpanParts {
  traceId: string;
  spanId: string;
  traceFlags: number;
}

/** Formats a span's context as a W3C traceparent. */
export const traceText = ({ traceId, spanId, traceFlags }: SpanParts): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;

/** Parses a W3C traceparent of version 00; null if the text is not one. */
export function spanContextOf(text: string): (SpanParts & { isRemote: true }) | null {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
