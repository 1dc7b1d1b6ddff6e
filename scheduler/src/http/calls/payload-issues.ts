/**
 * Finds the places where a payload violates its payload schema. The result only helps users who fill in forms: the handler's own schema
 * decides, and validates each payload when its run begins.
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

/** Schemas whose check exceeded the time limit, the most recent `costlyMost`. They are not checked again, whatever the payload is. */
const tooCostly = new Set<string>();
const costlyMost = 100;

/** Checks a payload against its schema. @returns at most `issuesMost` violations; null if the schema cannot be checked here */
export function payloadIssues(schema: PayloadSchema, payload: unknown): PayloadIssue[] | null {
  const known = JSON.stringify(schema);
  if (tooCostly.has(known)) return null;
  readers ??= openReaders();
  const open = readers;
  const began = process.cpuUsage();
  try {
    return cutOffAfter(limits.payloadCheckMs, () => issuesOf(open, schema, payload));
  } catch (error) {
    // The schema has an unknown dialect or keyword, or refers to itself. It is not checked here; the handler's own schema decides.
    if (!(error instanceof CutOff)) return null;
    // The interrupted check may have left the readers in an inconsistent state, so they are created again.
    readers = undefined;
    // If the check got little CPU time before the time limit, the schema is not necessarily costly.
    const { user, system } = process.cpuUsage(began);
    if ((user + system) / 1_000 < limits.payloadCheckMs / 4) return null;
    tooCostly.add(known);
    const [oldest] = tooCostly;
    if (tooCostly.size > costlyMost && oldest !== undefined) tooCostly.delete(oldest);
    return null;
  }
}

/**
 * One validator for the current dialect of JSON Schema, and one for the previous dialect, in which most schemas are written. Each compiles
 * its meta-schema once.
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
      // Otherwise ajv would cache every compiled schema.
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
  // A missing property is reported at the property's own path, because a form has a field there.
  return { path: keyword === "required" ? [...path, params.missingProperty as string] : path, message };
}
