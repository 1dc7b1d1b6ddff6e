/** Converts a thrown value to a form that can be sent between threads or processes, and back. */
import { isNativeError } from "node:util/types";
import { CarillonError, type ErrorCode, errorCodes, messageOf } from "../../base/errors.ts";

export type Thrown =
  /** The thrown value is the reason why the run was asked to stop. */
  | { is: "reason" }
  /** A value that is no Error. */
  | { is: "value"; value: unknown }
  | { is: "error"; error: SentError };

interface SentError {
  name: string;
  message: string;
  stack: string | undefined;
  /** The fields of a CarillonError; null: the error is none. */
  coded: { code: ErrorCode; hint: string; retryAfterMs: number | undefined; path: string } | null;
  cause: Thrown | undefined;
  /** All other properties of the error, such as `code`. */
  own: Record<string, unknown>;
}

const causesMost = 8;
const known = new Set(["name", "message", "stack", "cause", "code", "hint", "retryAfterMs", "path"]);

/** @param reason the reason why the run was asked to stop */
export function sent(thrown: unknown, reason?: unknown, depth = 0): Thrown {
  if (reason !== undefined && thrown === reason) return { is: "reason" };
  try {
    if (isNativeError(thrown) || thrown instanceof Error)
      return { is: "error", error: sentError(thrown, reason, depth) };
    return { is: "value", value: structuredClone(thrown) };
  } catch {
    // The value cannot be copied, or throws when it is read: its text replaces it.
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

/** Recognised by its fields, because a handler's module may have loaded another copy of this package. */
function codedOf(error: Error): SentError["coded"] {
  const { name, code, hint, retryAfterMs, path } = error as Partial<CarillonError> & Error;
  if (name !== "CarillonError" || typeof code !== "string" || !Object.hasOwn(errorCodes, code)) return null;
  return { code: code as ErrorCode, hint: hint ?? "", retryAfterMs, path: path ?? "" };
}

function copied(value: unknown): unknown {
  try {
    return structuredClone(value);
  } catch {
    // The property is a function, a socket or the like, which has no meaning on the other side.
    return undefined;
  }
}

/** @param reason the reason why the run was asked to stop */
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
