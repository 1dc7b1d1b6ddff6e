import { messageOf } from "../base/errors.ts";
import { type Json, jsonText } from "../base/json.ts";
import { errorParts } from "./error-parts.ts";

/**
 * The part of a log line's fields that can be kept, since a line never fails the run that writes it: Errors as their parts, big integers as
 * texts, and the reason in place of each value that cannot be kept.
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
    // Too large together, or throws when it is read: the reason is given for the whole.
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
