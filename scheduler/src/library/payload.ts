import type { StandardSchemaV1 } from "@standard-schema/spec";
import { CarillonError } from "../base/errors.ts";
import { jsonText } from "../base/json.ts";
import { type PayloadSchema, payloadSchemaOf } from "../task/payload-schema.ts";

/** @returns the value that the schema makes of `value` @throws PAYLOAD_INVALID listing every issue with its path */
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

/** How errors name the payload. */
export const payloadName = (task: string): string => `the payload of task ${task}`;

/** The stored form of an enqueued payload. The schema checks the payload as a worker will receive it, after JSON. @throws PAYLOAD_… */
export async function payloadText(schema: StandardSchemaV1 | undefined, value: unknown, task: string) {
  const text = jsonText(value, payloadName(task));
  if (schema) await validatePayload(schema, text === null ? undefined : JSON.parse(text), task);
  return text;
}

interface Speaking {
  "~standard": { jsonSchema?: { input?: (options: { target: string }) => unknown } };
}

/** The JSON Schema of a schema in code; undefined: it has none, or one too long to be stored with the task. */
export function saidSchema(schema: StandardSchemaV1 | undefined): PayloadSchema | undefined {
  const say = (schema as Speaking | undefined)?.["~standard"].jsonSchema?.input;
  if (!say) return undefined;
  try {
    return payloadSchemaOf("", say({ target: "draft-2020-12" }));
  } catch {
    // JSON Schema cannot express a part of the schema, such as a function: the console then shows no form, and everything else works.
    return undefined;
  }
}
