import { createHash } from "node:crypto";
import type { z } from "zod";
import { type RouteShape, writes } from "../api/contract/route.ts";
import { issuesText } from "../api/issues.ts";
import { CarillonError, pathTo } from "../base/errors.ts";

/** The length of the hash in an ETag: 16 characters in base64url, that is 96 bits. */
const tagLength = 16;

/** Validates the path, query and body of a request, and returns all parameters in one object. @throws REQUEST_INVALID */
export function readGiven(
  shape: RouteShape,
  { params, query, body }: { params: unknown; query: unknown; body: unknown },
): Record<string, unknown> {
  return {
    ...(shape.params ? parsed("the path", shape.params, spelled(shape.params, params)) : {}),
    ...(shape.query ? parsed("the query", shape.query, spelled(shape.query, query)) : refuseAny(query)),
    // A missing body is read as {}, which passes if all fields of the body are optional.
    ...(shape.body ? parsed("the body", shape.body, body ?? {}) : {}),
  };
}

/**
 * Returns the version in the If-Match header, without the hash that an ETag also contains; null means any version. If a route ignores
 * If-Match, a change with a version in that header is refused, because the version would not be checked.
 * @throws PRECONDITION_NEEDED, REQUEST_INVALID
 */
export function ifVersionOf(shape: RouteShape, header: string | undefined): number | null {
  const { etag, method } = shape;
  if (etag === "demands" || (etag === "heeds" && header !== undefined)) return versionOf(header);
  if (header === undefined || header === "*" || !writes(shape)) return null;
  throw new CarillonError("REQUEST_INVALID", `this ${method} takes no If-Match`, {
    hint: "Leave it out: what is asked for is done to whatever is there.",
  });
}

/**
 * The ETag of an answer: its version, and a hash of the whole answer. The hash is needed because parts of an answer, such as a task's pause
 * and counters, change without a new version.
 */
export const tagOf = (version: number, text: string): string =>
  `"${version}.${createHash("sha256").update(text).digest("base64url").slice(0, tagLength)}"`;

/** True if the If-None-Match header contains the tag or `*`, which means that the client already has this answer. */
export const hasAlready = (header: string | undefined, tag: string): boolean =>
  (header ?? "")
    .split(",")
    .map((one) => one.trim().replace(/^W\//, ""))
    .some((one) => one === "*" || one === tag);

/** Parses an If-Match header: `"7"` → 7; `*` → null, which means any version. @throws PRECONDITION_NEEDED, REQUEST_INVALID */
function versionOf(header: string | undefined): number | null {
  if (header === undefined) {
    throw new CarillonError("PRECONDITION_NEEDED", "the request has no If-Match", {
      hint: "Send the ETag of what the change is made from, or * for whatever is there.",
    });
  }
  if (header === "*") return null;
  const [, digits] = /^"(\d{1,9})(?:\.[\w-]{1,64})?"$/.exec(header) ?? [];
  if (digits !== undefined) return Number(digits);
  throw new CarillonError("REQUEST_INVALID", `If-Match cannot be ${JSON.stringify(header.slice(0, 50))}`, {
    hint: 'Send an ETag as it was given, such as "7", or *.',
  });
}

function parsed(where: string, schema: z.ZodObject, value: unknown): Record<string, unknown> {
  const result = schema.safeParse(value);
  if (result.success) {
    const lost = lostIn(value, result.data, []);
    if (lost === undefined) return result.data;
    throw new CarillonError(
      "REQUEST_INVALID",
      `${where} is not what the contract says: nothing there is called __proto__`,
      {
        hint: "Give it another name, or give it within a payload, which may be any JSON.",
        path: pathOf(lost),
      },
    );
  }
  const { issues } = result.error;
  throw new CarillonError("REQUEST_INVALID", `${where} is not what the contract says: ${issuesText(issues)}`, {
    hint: "See /v1/openapi.json.",
    path: pathOf(issues[0]?.path ?? []),
  });
}

/** Finds a key `__proto__` that validation has dropped, as zod's schemas of records do. Returns its path; undefined if there is none. */
function lostIn(given: unknown, read: unknown, path: readonly string[]): readonly string[] | undefined {
  if (given === read || typeof given !== "object" || typeof read !== "object" || !given || !read) return undefined;
  for (const [name, part] of Object.entries(given)) {
    if (name === "__proto__" && !Object.hasOwn(read, name)) return [...path, name];
    const lost = lostIn(part, (read as Record<string, unknown>)[name], [...path, name]);
    if (lost !== undefined) return lost;
  }
  return undefined;
}

/** The path in the form of the library's errors: a task's option appears without the surrounding `options` object. */
const pathOf = (steps: readonly PropertyKey[]): string =>
  steps
    .filter((step) => step !== "options")
    .reduce<string>((path, step) => pathTo(path, typeof step === "number" ? `[${step}]` : String(step)), "");

function refuseAny(query: unknown): Record<string, never> {
  const [name] = Object.keys(query as object);
  if (name === undefined) return {};
  throw new CarillonError("REQUEST_INVALID", `the query has no ${JSON.stringify(name)}`, {
    hint: "See /v1/openapi.json.",
    path: name,
  });
}

type Def = { type: string; innerType?: { def: Def }; element?: { def: Def } };
const innermost = (def: Def): Def => (def.innerType ? innermost(def.innerType.def) : def);

/**
 * Converts the texts of a path or query to the number, boolean or list that the contract requires. A text that cannot be converted is
 * returned unchanged, and refused later.
 */
function spelled(schema: z.ZodObject, given: unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(given as Record<string, unknown>).map(([name, value]) => {
      // `Object.hasOwn` is used because every object inherits properties such as "constructor" that are not fields of the schema.
      const field = Object.hasOwn(schema.shape, name) ? (schema.shape[name] as { def: Def }) : undefined;
      return [name, field ? asType(innermost(field.def), value) : value];
    }),
  );
}

function asType({ type, element }: Def, value: unknown): unknown {
  if (element) return [value].flat().map((one) => asType(innermost(element.def), one));
  if (typeof value !== "string") return value;
  if (type === "number" && /^-?\d{1,16}(?:\.\d{1,9})?$/.test(value)) return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  return value;
}
