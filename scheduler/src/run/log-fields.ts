import { messageOf } from "../base/errors.ts";
import { type Json, jsonText } from "../base/json.ts";
import { errorParts } from "./error-parts.ts";

/**
 * Returns the part of a log line's fields that can be stored; a line never fails the run that writes it. Errors become their parts, big
 * integers become strings, and each value that cannot be stored is replaced by the reason.
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
    // The fields are too large together, or reading them throws: the reason replaces all of them.
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
