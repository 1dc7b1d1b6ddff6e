/**
 * What a payload schema has against a payload. A help to people: what counts is the handler's own schema, which looks at each
 * payload when its run begins.
 */
import { z } from "zod";
import type { Json } from "../json.ts";
import type { PayloadSchema } from "../payload-schema.ts";

export interface PayloadIssue {
  path: (string | number)[];
  message: string;
}

const issuesMost = 100;

/** @returns null: the schema is one that cannot be checked by here */
export function payloadIssues(schema: PayloadSchema, payload: unknown): PayloadIssue[] | null {
  let check: z.ZodType;
  try {
    check = z.fromJSONSchema(withoutPatterns(schema) as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    // A dialect or a word that is not known: the handler's own schema has the last word anyway.
    return null;
  }
  const { error } = check.safeParse(payload);
  return (error?.issues ?? []).slice(0, issuesMost).map(({ path, message }) => ({
    path: path.map((step) => (typeof step === "symbol" ? String(step) : step)),
    message,
  }));
}

const ofNames = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);
const ofSchemas = new Set(["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"]);
const ofLists = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);

/** A pattern may take for ever, and whoever writes a task shall not hold up a server: the worker looks at them. */
function withoutPatterns(schema: Json): Json {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return schema;
  const kept = Object.entries(schema).filter(([word]) => word !== "pattern" && word !== "patternProperties");
  return Object.fromEntries(
    kept.map(([word, value]): [string, Json] => {
      if (ofSchemas.has(word)) return [word, withoutPatterns(value)];
      if (ofLists.has(word) && Array.isArray(value)) return [word, value.map(withoutPatterns)];
      if (!ofNames.has(word) || typeof value !== "object" || value === null || Array.isArray(value))
        return [word, value];
      return [word, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutPatterns(one)]))];
    }),
  );
}
