/**
 * What a task says of its payloads, as JSON Schema: for forms, for other languages' workers, and for a check before a run is made.
 * It comes from the schema in code where that can say itself so, or is written.
 */
import { CarillonError } from "./errors.ts";
import { type Json, jsonText } from "./json.ts";
import { limits } from "./limits.ts";

export type PayloadSchema = { [name: string]: Json };

/** @throws TASK_INVALID */
export function payloadSchemaOf(task: string, given: unknown): PayloadSchema {
  const text = jsonText(given, `task ${task}: payloadSchema`);
  const schema = text === null ? null : (JSON.parse(text) as Json);
  if (typeof schema !== "object" || schema === null || Array.isArray(schema) || text === null)
    throw invalid(
      task,
      "payloadSchema must be an object",
      'A JSON Schema, such as { type: "object", properties: { … } }.',
    );
  if (text.length > limits.payloadSchemaLength)
    throw invalid(task, `payloadSchema has ${text.length} characters`, `Give at most ${limits.payloadSchemaLength}.`);
  return schema;
}

const invalid = (task: string, what: string, hint: string) =>
  new CarillonError("TASK_INVALID", `task ${task}: ${what}`, { hint });
