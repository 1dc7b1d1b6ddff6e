import type { StandardSchemaV1 } from "@standard-schema/spec";
import { CarillonError } from "../base/errors.ts";
import { jsonText } from "../base/json.ts";
import { type PayloadSchema, payloadSchemaOf } from "../task/payload-schema.ts";

/** @returns what the schema makes of the value @throws PAYLOAD_INVALID listing every issue with its path */
export async function validatePayload(schema: StandardSchemaV1, value: unknown, task: string): Promise<unknown> {
  const result = await schema["~standard"].validate(value);
  if (!result.issues) return result.value;
  const issues = result.issues.map(({ message, path }) => {
    const where = (path ?? []).map((step) => (typeof step === "object" ? step.key : step)).join(".");
    return where === "" ? message : `${where}: ${message}`;
  });
  throw new CarillonError(
    "PAYLOAD_INVALID",
    `the payload of task ${task} does not match its schema: ${issues.join("; ")}`,
    { hint: hintOf(value) },
  );
}

function hintOf(value: unknown): string {
  if (value === undefined || value === null)
    return "A scheduled run gets `slotPayload`; an enqueued one the payload given.";
  return typeof value === "object" ? "It is checked as the JSON that is kept of it, where a Date is a text." : "";
}

/**
 * Validates a payload from the store. The store returns null also for a run without a payload, so undefined is tried first.
 * @throws PAYLOAD_INVALID
 */
export async function validateKept(schema: StandardSchemaV1, kept: unknown, task: string): Promise<unknown> {
  if (kept !== null && kept !== undefined) return validatePayload(schema, kept, task);
  const none = validatePayload(schema, undefined, task);
  return none.catch(() => validatePayload(schema, null, task).catch(() => none));
}

/** The payload's name in errors. */
export const payloadName = (task: string): string => `the payload of task ${task}`;

/** An enqueued payload as the store keeps it. The schema checks the value that a worker will be given. @throws PAYLOAD_… */
export async function payloadText(schema: StandardSchemaV1 | undefined, value: unknown, task: string) {
  const text = jsonText(value, payloadName(task));
  if (schema) await validatePayload(schema, text === null ? undefined : JSON.parse(text), task);
  return text;
}

interface Speaking {
  "~standard": { jsonSchema?: { input?: (options: { target: string }) => unknown } };
}

/** The JSON Schema of a schema in code; undefined if it has none, or one too long to be kept with the task. */
export function saidSchema(schema: StandardSchemaV1 | undefined): PayloadSchema | undefined {
  const say = (schema as Speaking | undefined)?.["~standard"].jsonSchema?.input;
  if (!say) return undefined;
  try {
    return payloadSchemaOf("", say({ target: "draft-2020-12" }));
  } catch {
    // The schema has a part that JSON Schema cannot express, such as a function: the console then shows no form, and all else works.
    return undefined;
  }
}
