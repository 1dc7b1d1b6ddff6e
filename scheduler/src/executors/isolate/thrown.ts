/** Converts a thrown value to a form that can be sent between threads or processes, and back. */
import { isNativeError } from "node:util/types";
import { CarillonError, type ErrorCode, errorCodes, messageOf } from "../../base/errors.ts";

export type Thrown =
  /** The thrown value is the reason with which the run's signal was aborted. */
  | { is: "reason" }
  /** The thrown value is not an Error. */
  | { is: "value"; value: unknown }
  | { is: "error"; error: SentError };

interface SentError {
  name: string;
  message: string;
  stack: string | undefined;
  /** The fields of a CarillonError; null if the error is not one. */
  coded: { code: ErrorCode; hint: string; retryAfterMs: number | undefined; path: string } | null;
  cause: Thrown | undefined;
  /** All other properties of the error, such as `code`. */
  own: Record<string, unknown>;
}

const causesMost = 8;
const known = new Set(["name", "message", "stack", "cause", "code", "hint", "retryAfterMs", "path"]);

/** Converts a thrown value to its sendable form. @param reason the reason with which the run's signal was aborted */
export function sent(thrown: unknown, reason?: unknown, depth = 0): Thrown {
  if (reason !== undefined && thrown === reason) return { is: "reason" };
  try {
    if (isNativeError(thrown) || thrown instanceof Error)
      return { is: "error", error: sentError(thrown, reason, depth) };
    return { is: "value", value: structuredClone(thrown) };
  } catch {
    // If the value cannot be copied, or throws when it is read, its text is sent instead.
    return { is: "value", value: messageOf(thrown) };
  }
}

function sentError(error: Error, reason: unknown, depth: number): SentError {
  const { name, message, stack, cause } = error;
  const coded = codedOf(error);
  const own = Object.entries(error).flatMap(([key, value]) => {
    if (key === "code" ? coded !== null : known.has(key) && coded !== null) return [];
    const copy = known.has(key) && key !== "code" ? undefined : copied(value);
    return copy === undefined ? [] : [[key, copy] as const];
  });
  return {
    name: String(name),
    message: String(message),
    stack: typeof stack === "string" ? stack : undefined,
    coded,
    cause: cause === undefined || depth >= causesMost ? undefined : sent(cause, reason, depth + 1),
    own: Object.fromEntries(own),
  };
}

/** Detects a CarillonError by its fields instead of its class, because the handler's module may use another copy of this package. */
function codedOf(error: Error): SentError["coded"] {
  const { name, code, hint, retryAfterMs, path } = error as Partial<CarillonError> & Error;
  if (name !== "CarillonError" || typeof code !== "string" || !Object.hasOwn(errorCodes, code)) return null;
  return { code: code as ErrorCode, hint: hint ?? "", retryAfterMs, path: path ?? "" };
}

function copied(value: unknown): unknown {
  try {
    return structuredClone(value);
  } catch {
    // Properties that cannot be copied, such as functions and sockets, are left out.
    return undefined;
  }
}

/** Restores a thrown value from its sendable form. @param reason the reason with which the run's signal was aborted */
export function received(thrown: Thrown, reason?: unknown): unknown {
  if (thrown.is === "reason") return reason;
  if (thrown.is === "value") return thrown.value;
  const { name, message, stack, coded, cause, own } = thrown.error;
  const options = cause === undefined ? {} : { cause: received(cause, reason) };
  const error = coded
    ? new CarillonError(coded.code, message, { ...coded, ...options })
    : plain(name, message, options);
  Object.assign(error, own);
  if (stack !== undefined) Object.defineProperty(error, "stack", { value: stack, configurable: true, writable: true });
  return error;
}

const classes: Record<string, new (message: string, options?: ErrorOptions) => Error> = {
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
};

function plain(name: string, message: string, options: ErrorOptions): Error {
  const error = new (classes[name] ?? Error)(message, options);
  if (error.name !== name) Object.defineProperty(error, "name", { value: name, configurable: true, writable: true });
  return error;
}
