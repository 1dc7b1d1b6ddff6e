/**
 * The JSON Schema of a task's payloads: for forms, for workers in other languages, and for a check of the payload before a run is created.
 * It is derived from the schema in code, if that can produce one, or is written by hand.
 */
import type { Json } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { isObject, json, type Kind, wrong } from "./kinds/kinds.ts";

export type PayloadSchema = { [name: string]: Json };

export const payloadSchemaKind: Kind<PayloadSchema> = {
  shape: { is: "schema" },
  hint: 'A JSON Schema, such as { type: "object", properties: { … } }.',
  read(given, place) {
    const schema = json.read(given, place);
    if (!isObject(schema)) throw wrong(place, " must be an object", this.hint);
    const { length } = JSON.stringify(schema);
    if (length > limits.payloadSchemaLength)
      throw wrong(place, ` has ${length} characters`, `Give at most ${limits.payloadSchemaLength}.`);
    return schema as PayloadSchema;
  },
  write: (kept) => kept,
};

/** Reads a payload schema. @throws TASK_INVALID, PAYLOAD_TOO_LARGE, PAYLOAD_NOT_JSON */
export const payloadSchemaOf = (task: string, given: unknown): PayloadSchema =>
  payloadSchemaKind.read(given, { task, path: "payloadSchema" });
