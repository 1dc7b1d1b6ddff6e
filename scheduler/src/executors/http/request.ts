import { request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { Target } from "./target.ts";

export interface Sent {
  method: string;
  headers: Record<string, string>;
  body: Buffer | null;
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** The body, or its beginning if `cut`. */
  body: Buffer;
  /** True if the body was longer than the limit. */
  cut: boolean;
}

/**
 * Sends one request on a new connection to one of the target's checked addresses. If the body exceeds the limit, its remainder is not read
 * and the connection is closed.
 * @throws HTTP_FAILED; the signal's reason
 */
export function send(
  { url, shown, addresses }: Target,
  sent: Sent,
  bytesMax: number,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const failed = (cause: unknown) => {
      if (signal.aborted) return reject(signal.reason);
      reject(
        new CarillonError("HTTP_FAILED", `${sent.method} ${shown}: ${messageOf(reasonOf(cause))}`, {
          hint: "The receiver could not be reached, or broke off. The task's retry policy decides on another try.",
          cause,
        }),
      );
    };
    const outgoing = (url.protocol === "https:" ? secureRequest : plainRequest)(url, {
      method: sent.method,
      headers: { ...sent.headers, ...(sent.body === null ? {} : { "content-length": sent.body.length }) },
      // Connections are not reused, because an open connection may have been checked for another host name.
      agent: false,
      lookup: (_host, options, callback) => {
        const [first] = addresses;
        if (options.all === true) callback(null, addresses);
        else callback(null, first?.address ?? "", first?.family);
      },
    });
    const abort = () => outgoing.destroy();
    signal.addEventListener("abort", abort, { once: true });
    outgoing.on("close", () => {
      signal.removeEventListener("abort", abort);
      failed(new Error("the connection ended without an answer"));
    });
    outgoing.on("error", failed);
    outgoing.on("upgrade", (_, socket) => {
      socket.destroy();
      failed(new Error("the receiver wants another protocol"));
    });
    outgoing.on("response", (incoming) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const answered = (cut: boolean) => {
        const body = Buffer.concat(chunks).subarray(0, bytesMax);
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body, cut });
      };
      incoming.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes <= bytesMax) return;
        answered(true);
        outgoing.destroy();
      });
      incoming.on("end", () => answered(false));
      incoming.on("error", failed);
      incoming.on("close", () => {
        // If the body has ended or exceeded the limit, the promise is settled already and this has no effect.
        if (!incoming.complete) failed(new Error("the answer broke off"));
      });
    });
    if (signal.aborted) abort();
    outgoing.end(sent.body ?? undefined);
  });
}

/** The first error, if several addresses were tried and Node.js reports an error for each. */
const reasonOf = (cause: unknown): unknown => (cause instanceof AggregateError ? (cause.errors[0] ?? cause) : cause);

/** Parses a Retry-After header, which contains seconds or a date. Returns ms from `wallMs`; undefined if invalid or in the past. */
export function retryAfterMs(given: string | string[] | undefined, wallMs: number): number | undefined {
  if (typeof given !== "string") return undefined;
  const ms = /^\d+$/.test(given.trim()) ? Number(given) * 1_000 : Date.parse(given) - wallMs;
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
