import { CarillonError, messageOf } from "../../base/errors.ts";

export function listenFailed(listen: string, error: unknown): CarillonError {
  return new CarillonError("LISTEN_FAILED", `cannot listen at ${listen}: ${messageOf(error)}`, {
    cause: error,
    hint: hintOf((error as { code?: unknown }).code),
  });
}

function hintOf(code: unknown): string {
  if (code === "EADDRINUSE")
    return "Another process listens there, perhaps another Carillon. End it, or give another port; port 0 takes a free one.";
  if (code === "EACCES") return "This user may not use that port. Give one from 1024 on.";
  return "The address may not be this machine's. 127.0.0.1 always is.";
}

/** Formats the server's address for messages. @param bound the value of the server's `address()`, which has the actual port */
export function listeningAt(host: string, port: number, bound: { port: number } | string | null): string {
  const taken = typeof bound === "object" && bound !== null ? bound.port : port;
  return `${host.includes(":") ? `[${host}]` : host}:${taken}`;
}
