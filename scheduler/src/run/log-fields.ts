import { messageOf } from "../base/errors.ts";
import { type Json, jsonText } from "../base/json.ts";
import { errorParts } from "./error-parts.ts";

/**
 * Returns the part of a log line's fields that can be stored, and never throws, so that logging cannot fail a run. An Error becomes its
 * message, code and stack, a bigint becomes a string, and a value that cannot be stored is replaced by the reason.
 */
export function logFields(fields: unknown): Json {
  if (fields === undefined) return null;
  try {
    return asKept(fields);
  } catch (error) {
    return fieldByField(fields) ?? notKept(error);
  }
}

function fieldByField(fields: unknown): Json | undefined {
  try {
    const some = Object.entries(fields as object).map(([name, value]) => [name, orReason(value)]);
    return asKept(Object.fromEntries(some));
  } catch {
    // The fields are too large in total, or reading them throws. The reason then replaces all of them.
    return undefined;
  }
}

function orReason(value: unknown): Json {
  try {
    return asKept(value ?? null);
  } catch (error) {
    return notKept(error);
  }
}

const notKept = (error: unknown): Json => ({ notKept: messageOf(error) });

const asKept = (value: unknown): Json => JSON.parse(jsonText(value, "it", replaced) as string) as Json;

function replaced(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  return value instanceof Error ? errorParts(value) : value;
}
