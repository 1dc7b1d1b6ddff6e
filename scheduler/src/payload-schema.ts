/**
 * What a task says of its payloads, as JSON Schema: for forms, for other languages' workers, and for a check before a run is made.
 * It comes from the schema in code where that can say itself so, or is written.
 */
import type { StandardSchemaV1 } from "@standard-schema/spec";
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

interface Speaking {
  "~standard": { jsonSchema?: { input?: (options: { target: string }) => unknown } };
}

/** What a schema in code says of itself; undefined where it cannot, or is too long to be kept with the task. */
export function saidSchema(schema: StandardSchemaV1 | undefined): PayloadSchema | undefined {
  const say = (schema as Speaking | undefined)?.["~standard"].jsonSchema?.input;
  if (!say) return undefined;
  try {
    return payloadSchemaOf("", say({ target: "draft-2020-12" }));
  } catch {
    // It has what JSON Schema has no words for, such as a function: then there is no form, and all else as ever.
    return undefined;
  }
}
