/**
 * What a payload schema has against a payload. A help to people: what counts is the handler's own schema, which looks at each
 * payload when its run begins.
 */
import { z } from "zod";
import { CutOff, cutOffAfter } from "../cut-off.ts";
import type { Json } from "../json.ts";
import { limits } from "../limits.ts";
import type { PayloadSchema } from "../payload-schema.ts";

export interface PayloadIssue {
  path: (string | number)[];
  message: string;
}

const issuesMost = 100;

/** Schemas by which a check was cut off, the latest: no other payload shall take as long. */
const tooCostly = new Set<string>();
const costlyMost = 100;

/** @returns null: the schema is one that cannot be checked by here */
export function payloadIssues(schema: PayloadSchema, payload: unknown): PayloadIssue[] | null {
  const known = JSON.stringify(schema);
  if (tooCostly.has(known)) return null;
  const began = process.cpuUsage();
  try {
    return cutOffAfter(limits.payloadCheckMs, () => issuesOf(schema, payload));
  } catch (error) {
    // A dialect or a word that is not known, or one that means itself: the handler's own schema has the last word anyway.
    if (!(error instanceof CutOff)) return null;
    // One that got no processor says nothing of its schema.
    const { user, system } = process.cpuUsage(began);
    if ((user + system) / 1_000 < limits.payloadCheckMs / 4) return null;
    tooCostly.add(known);
    const [oldest] = tooCostly;
    if (tooCostly.size > costlyMost && oldest !== undefined) tooCostly.delete(oldest);
    return null;
  }
}

function issuesOf(schema: PayloadSchema, payload: unknown): PayloadIssue[] {
  const check = z.fromJSONSchema(withoutPatterns(schema) as Parameters<typeof z.fromJSONSchema>[0]);
  const { error } = check.safeParse(payload);
  return (error?.issues ?? []).slice(0, issuesMost).map(({ path, message }) => ({
    path: path.map((step) => (typeof step === "symbol" ? String(step) : step)),
    message,
  }));
}

/** What stands below these are schemas by any names; and below these any JSON, and no schema. */
const ofNames = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);
const ofValues = new Set(["const", "enum", "default", "examples"]);

/** A pattern may take for ever, and whoever writes a task shall not hold up a server: the worker looks at them. */
function withoutPatterns(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(withoutPatterns);
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(([word]) => word !== "pattern" && word !== "patternProperties");
  return Object.fromEntries(
    kept.map(([word, value]): [string, Json] => {
      if (ofValues.has(word)) return [word, value];
      if (!ofNames.has(word) || typeof value !== "object" || value === null || Array.isArray(value))
        return [word, withoutPatterns(value)];
      return [word, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutPatterns(one)]))];
    }),
  );
}
