/**
 * Finds where a payload violates its payload schema. This only helps people who fill in forms: the handler's own schema decides,
 * and it checks each payload when its run begins.
 */
import { Ajv } from "ajv";
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { CutOff, cutOffAfter } from "../../base/cut-off.ts";
import { limits } from "../../base/limits.ts";
import type { PayloadSchema } from "../../task/payload-schema.ts";

export interface PayloadIssue {
  path: (string | number)[];
  message: string;
}

const issuesMost = 100;

/** The schemas whose check was cut off most recently: they are not checked again, whatever the payload. */
const tooCostly = new Set<string>();
const costlyMost = 100;

/** @returns null if the schema cannot be checked here */
export function payloadIssues(schema: PayloadSchema, payload: unknown): PayloadIssue[] | null {
  const known = JSON.stringify(schema);
  if (tooCostly.has(known)) return null;
  readers ??= openReaders();
  const open = readers;
  const began = process.cpuUsage();
  try {
    return cutOffAfter(limits.payloadCheckMs, () => issuesOf(open, schema, payload));
  } catch (error) {
    // An unknown dialect or keyword, or a schema that refers to itself: the handler's own schema decides anyway.
    if (!(error instanceof CutOff)) return null;
    // A check that was cut off may have left the readers in the middle of a compilation.
    readers = undefined;
    // A check that got too little CPU time does not prove the schema costly.
    const { user, system } = process.cpuUsage(began);
    if ((user + system) / 1_000 < limits.payloadCheckMs / 4) return null;
    tooCostly.add(known);
    const [oldest] = tooCostly;
    if (tooCostly.size > costlyMost && oldest !== undefined) tooCostly.delete(oldest);
    return null;
  }
}

/**
 * The current dialect of JSON Schema, and the previous one, in which most schemas were written. Their meta-schemas are compiled
 * once.
 */
let readers: Ajv[] | undefined;

const openReaders = (): Ajv[] =>
  [Ajv2020, Ajv].map((Dialect) => {
    const strict = { strict: true, strictTypes: false, strictTuples: false, strictRequired: false };
    const reader = new Dialect({ ...strict, allErrors: true, addUsedSchema: false, logger: false });
    addFormats.default(reader);
    reader.validateSchema({});
    return reader;
  });

/** @throws for a keyword, format or dialect that ajv would not check */
function issuesOf(open: readonly Ajv[], { $id: _, ...schema }: PayloadSchema, payload: unknown): PayloadIssue[] {
  let unread: unknown;
  for (const reader of open) {
    try {
      const check = reader.compile(schema);
      return check(payload) ? [] : (check.errors ?? []).slice(0, issuesMost).map((error) => issueOf(error, payload));
    } catch (error) {
      unread = error;
    } finally {
      // Without this, ajv keeps each schema that it has compiled.
      reader.removeSchema(schema);
    }
  }
  throw unread;
}

function issueOf({ instancePath, keyword, params, message = keyword }: ErrorObject, payload: unknown): PayloadIssue {
  const steps = instancePath.split("/").slice(1);
  let at = payload;
  const path = steps.map((step) => {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    const isList = Array.isArray(at);
    at = (at as Record<string, unknown>)[name];
    return isList ? Number(name) : name;
  });
  // A missing property is reported at its own path, where a form has a field for it.
  return { path: keyword === "required" ? [...path, params.missingProperty as string] : path, message };
}
