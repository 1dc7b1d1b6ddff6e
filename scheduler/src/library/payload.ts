import type { StandardSchemaV1 } from "@standard-schema/spec";
import { CarillonError } from "../base/errors.ts";
import { jsonText } from "../base/json.ts";
import { type PayloadSchema, payloadSchemaOf } from "../task/payload-schema.ts";

/** @returns the value that the schema produces from `value` @throws PAYLOAD_INVALID, whose message lists every issue with its path */
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
 * Validates a payload that was read from the store. A run without a payload has null there, so null is validated as undefined first.
 * @throws PAYLOAD_INVALID
 */
export async function validateKept(schema: StandardSchemaV1, kept: unknown, task: string): Promise<unknown> {
  if (kept !== null && kept !== undefined) return validatePayload(schema, kept, task);
  const none = validatePayload(schema, undefined, task);
  return none.catch(() => validatePayload(schema, null, task).catch(() => none));
}

/** The name of the payload in error messages. */
export const payloadName = (task: string): string => `the payload of task ${task}`;

/**
 * Returns the JSON text of a payload. The schema validates the payload after a round trip through JSON, as a worker will receive it.
 * @throws PAYLOAD_…
 */
export async function payloadText(schema: StandardSchemaV1 | undefined, value: unknown, task: string) {
  const text = jsonText(value, payloadName(task));
  if (schema) await validatePayload(schema, text === null ? undefined : JSON.parse(text), task);
  return text;
}

interface Speaking {
  "~standard": { jsonSchema?: { input?: (options: { target: string }) => unknown } };
}

/**
 * Returns the JSON Schema that a schema library generates; undefined if the library generates no schema, or if the schema is too
 * long to be stored with the task.
 */
export function saidSchema(schema: StandardSchemaV1 | undefined): PayloadSchema | undefined {
  const say = (schema as Speaking | undefined)?.["~standard"].jsonSchema?.input;
  if (!say) return undefined;
  try {
    return payloadSchemaOf("", say({ target: "draft-2020-12" }));
  } catch {
    // JSON Schema cannot express the schema, or the text is too long. The console then shows no form; everything else works.
    return undefined;
  }
}
