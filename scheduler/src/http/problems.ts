import { statusOf } from "../api/problem-status.ts";
import type { Problem } from "../api/worker-protocol.ts";
import { CarillonError, errorCodes } from "../base/errors.ts";

/** Converts an error to an RFC 9457 problem. An error without a Carillon code is a defect; its details go only to the server's log. */
export function problemOf(error: unknown): Problem {
  if (!(error instanceof CarillonError)) {
    return {
      type: "about:blank",
      title: "Internal error",
      status: 500,
      detail: "The server failed; its log says why.",
    };
  }
  const { code, message, hint, path } = error;
  return {
    type: "about:blank",
    title: errorCodes[code],
    status: statusOf(code),
    detail: message,
    code,
    ...(hint === "" ? {} : { hint }),
    ...(path === "" ? {} : { path }),
  };
}

/** Converts errors thrown by Fastify itself to Carillon errors; returns other errors unchanged. */
export function asCarillonError(error: unknown): unknown {
  if (error instanceof CarillonError || !(error instanceof Error)) return error;
  const { code = "", statusCode = 500 } = error as { code?: string; statusCode?: number };
  if (statusCode === 413 || code === "FST_ERR_CTP_BODY_TOO_LARGE")
    return new CarillonError("REQUEST_TOO_LARGE", error.message, { cause: error, hint: "Send it in parts." });
  if (statusCode >= 400 && statusCode < 500)
    return new CarillonError("REQUEST_INVALID", error.message, { cause: error });
  return error;
}
