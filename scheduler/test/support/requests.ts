/** Builds requests from the contract, and finds the places of their texts, numbers, free JSON values and records. */
import { type RouteId, shapeOf } from "../../src/api/contract.ts";

interface Def {
  type: string;
  innerType?: Schema;
  options?: Schema[];
  element?: Schema;
  entries?: Record<string, string>;
  values?: unknown[];
  format?: string;
}
type Schema = { def: Def; shape?: Record<string, Schema>; minLength?: number };

export type Part = "params" | "query" | "body";
export interface Place {
  part: Part;
  path: (string | number)[];
  kind: "text" | "number" | "json" | "record";
}

const parts: Part[] = ["params", "query", "body"];
const partOf = (routeId: RouteId, part: Part): Schema | undefined =>
  shapeOf(routeId)[part] as unknown as Schema | undefined;

const inner = (schema: Schema): Schema => (schema.def.innerType ? inner(schema.def.innerType) : schema);
const isOptional = ({ def }: Schema): boolean =>
  def.type === "optional" || def.type === "default" || (def.innerType !== undefined && isOptional(def.innerType));

/** Returns a value that the schema accepts, without its optional fields. */
export function sample(schema: Schema): unknown {
  const { def, shape } = inner(schema);
  if (def.type === "string") return def.format === "datetime" ? "2030-01-01T00:00:00Z" : "a1";
  if (def.type === "number" || def.type === "int") return 1;
  if (def.type === "boolean") return true;
  if (def.type === "enum") return Object.values(def.entries ?? {})[0];
  if (def.type === "literal") return def.values?.[0];
  if (def.type === "array") return def.element ? [sample(def.element)] : [];
  if (def.type === "union") return def.options?.[0] ? sample(def.options[0]) : null;
  if (def.type === "record") return {};
  if (def.type === "object")
    return Object.fromEntries(
      Object.entries(shape ?? {}).flatMap(([name, one]) => (isOptional(one) ? [] : [[name, sample(one)]])),
    );
  return null;
}

function placesIn(schema: Schema, path: Place["path"], part: Part, found: Place[]): void {
  const { def, shape } = inner(schema);
  if (def.type === "string") found.push({ part, path, kind: "text" });
  else if (def.type === "number" || def.type === "int") found.push({ part, path, kind: "number" });
  else if (def.type === "unknown" || def.type === "any") found.push({ part, path, kind: "json" });
  else if (def.type === "record") found.push({ part, path, kind: "record" });
  else if (def.type === "array" && def.element) placesIn(def.element, [...path, 0], part, found);
  else if (def.type === "union") for (const option of def.options ?? []) placesIn(option, path, part, found);
  else if (def.type === "object")
    for (const [name, one] of Object.entries(shape ?? {})) placesIn(one, [...path, name], part, found);
}

/** Returns the place of every text, number, record and free JSON value that a request of the route can have. */
export function placesOf(routeId: RouteId): Place[] {
  const found: Place[] = [];
  for (const part of parts) {
    const schema = partOf(routeId, part);
    if (schema) placesIn(schema, [], part, found);
  }
  const seen = new Set<string>();
  return found.filter((place) => {
    const key = JSON.stringify([place.part, place.path, place.kind]);
    return !seen.has(key) && seen.add(key);
  });
}

type Given = Partial<Record<Part, unknown>>;

/** Returns a request that is valid except for `value` in one place. Missing parents of this place are added. */
export function requestWith(routeId: RouteId, { part, path, kind }: Place, value: unknown, right: Given): Given {
  const made = Object.fromEntries(
    parts.flatMap((one) => {
      const schema = partOf(routeId, one);
      return schema ? [[one, structuredClone(right[one] ?? sample(schema))]] : [];
    }),
  ) as Given;
  const put = kind === "record" ? { [String(value)]: value } : value;
  if (path.length === 0) return { ...made, [part]: put };
  let at = made[part] as Record<string | number, unknown>;
  let schema = partOf(routeId, part) as Schema;
  for (const [n, step] of path.entries()) {
    const next = stepInto(schema, step);
    if (!next) throw new Error(`${routeId} has no ${path.join(".")}`);
    schema = next;
    if (n === path.length - 1) at[step] = put;
    else {
      const wanted = typeof path[n + 1] === "number" ? Array.isArray(at[step]) : typeof at[step] === "object";
      if (!wanted || at[step] === null) at[step] = typeof path[n + 1] === "number" ? [] : filled(schema);
      at = at[step] as Record<string | number, unknown>;
    }
  }
  return made;
}

const filled = (schema: Schema): unknown => {
  const made = sample(schema);
  return typeof made === "object" && made !== null ? made : {};
};

/** Returns the schema of a field or item; for a union, that of the first member that has the field. */
function stepInto(schema: Schema, step: string | number): Schema | undefined {
  const { def, shape } = inner(schema);
  if (def.type === "union")
    return (def.options ?? []).map((one) => stepInto(one, step)).find((one) => one !== undefined);
  return typeof step === "number" ? def.element : shape?.[step];
}

/** Returns a request's path with its query, and its body. */
export function lineOf(routeId: RouteId, { params, query, body }: Given): { path: string; body?: unknown } {
  const named = params as Record<string, unknown> | undefined;
  const path = shapeOf(routeId).path.replace(/\{(\w+)\}/g, (_, place: string) => encoded(String(named?.[place])));
  const pairs = Object.entries((query ?? {}) as Record<string, unknown>).flatMap(([name, value]) =>
    [value].flat().map((one) => `${encoded(name)}=${encoded(String(one))}`),
  );
  return { path: pairs.length === 0 ? path : `${path}?${pairs.join("&")}`, ...(body === undefined ? {} : { body }) };
}

/** Encodes a text for a URL. As in a browser, parts that are not valid Unicode are sent as replacement characters. */
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());
