/** The subset of JSON Schema that a form supports; each unsupported part is edited as JSON in its own field. */

export type Schema = {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  format?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema | Schema[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  $ref?: string;
  $defs?: Record<string, Schema>;
  definitions?: Record<string, Schema>;
};

export type Field =
  | { kind: "text"; format: "text" | "date" | "date-time" | "time" | "email" | "uri" | "long"; schema: Schema }
  | { kind: "number"; whole: boolean; schema: Schema }
  | { kind: "yes-no"; schema: Schema }
  | { kind: "choice"; values: unknown[]; schema: Schema }
  | { kind: "object"; properties: [name: string, schema: Schema, required: boolean][]; schema: Schema }
  | { kind: "list"; items: Schema; schema: Schema }
  | { kind: "json"; schema: Schema };

const deepest = 8;

/** The form field for a schema. @param root the schema that `$ref` refers to */
export function fieldOf(given: Schema, root: Schema, depth = 0): Field {
  const schema = plainOf(given, root);
  if (depth > deepest) return { kind: "json", schema };
  if (schema.enum) return { kind: "choice", values: schema.enum, schema };
  if (schema.const !== undefined) return { kind: "choice", values: [schema.const], schema };
  switch (schema.type) {
    case "string":
      return { kind: "text", format: formatOf(schema), schema };
    case "integer":
    case "number":
      return { kind: "number", whole: schema.type === "integer", schema };
    case "boolean":
      return { kind: "yes-no", schema };
    case "array":
      return schema.items && !Array.isArray(schema.items)
        ? { kind: "list", items: schema.items, schema }
        : { kind: "json", schema };
    case "object": {
      const properties = Object.entries(schema.properties ?? {});
      if (properties.length === 0) return { kind: "json", schema };
      // The order of the fields comes from the list `required`, because the store keeps the order of lists but not of object keys.
      const required = schema.required ?? [];
      const placeOf = (name: string) => (required.includes(name) ? required.indexOf(name) : required.length);
      properties.sort(([a], [b]) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1));
      return {
        kind: "object",
        schema,
        properties: properties.map(([name, one]) => [name, one, required.includes(name)]),
      };
    }
    default:
      return { kind: "json", schema };
  }
}

/** Resolves `$ref` and unions with null. The schema's own keywords override those of the schema that it refers to. */
function plainOf(given: Schema, root: Schema): Schema {
  let schema = given;
  for (let steps = 0; steps < deepest; steps++) {
    const choices = schema.anyOf ?? schema.oneOf;
    const others = choices?.filter(({ type }) => type !== "null") ?? [];
    const next = schema.$ref ? referred(schema.$ref, root) : others.length === 1 ? others[0] : undefined;
    if (!next) break;
    const { $ref: _, anyOf: __, oneOf: ___, ...own } = schema;
    schema = { ...next, ...own };
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== "null");
    if (types.length === 1) return { ...schema, type: types[0] as string };
  }
  return schema;
}

function referred(ref: string, root: Schema): Schema | undefined {
  if (ref === "#") return root;
  const [, place, name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(ref) ?? [];
  const defined = place === "$defs" ? root.$defs : place === "definitions" ? root.definitions : undefined;
  try {
    return defined?.[decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~")];
  } catch {
    return undefined; // Its escapes are malformed or not UTF-8, so it refers to nothing.
  }
}

function formatOf({ format, maxLength = 0 }: Schema): Extract<Field, { kind: "text" }>["format"] {
  if (format === "date" || format === "date-time" || format === "time" || format === "email" || format === "uri")
    return format;
  return maxLength > 200 ? "long" : "text";
}

/**
 * Returns a form's initial value: the default, the only value of a choice, false (yes or no), or an empty list; undefined for other fields.
 * An object contains the initial values of its required fields and of those with a default.
 */
export function firstValue(given: Schema, root: Schema, depth = 0): unknown {
  const field = fieldOf(given, root, depth);
  if (field.schema.default !== undefined) return field.schema.default;
  if (field.kind === "choice" && field.values.length === 1) return field.values[0];
  if (field.kind === "yes-no") return false;
  if (field.kind === "list") return [];
  if (field.kind !== "object") return undefined;
  return Object.fromEntries(
    field.properties.flatMap(([name, schema, required]) => {
      const value =
        required || fieldOf(schema, root).schema.default !== undefined
          ? firstValue(schema, root, depth + 1)
          : undefined;
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Returns a copy of `whole` with `value` at this path; undefined removes a property of an object. */
export function placed(whole: unknown, path: readonly (string | number)[], value: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (typeof step === "number") {
    const list = Array.isArray(whole) ? [...whole] : [];
    list[step] = placed(list[step], rest, value);
    return list;
  }
  const before = typeof whole === "object" && whole !== null && !Array.isArray(whole) ? whole : {};
  const inner = placed((before as Record<string, unknown>)[step], rest, value);
  const { [step]: _, ...others } = before as Record<string, unknown>;
  // The spread preserves the order of the keys when a key is replaced.
  return inner === undefined ? others : { ...before, [step]: inner };
}

export function valueAt(whole: unknown, path: readonly (string | number)[]): unknown {
  let value = whole;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string | number, unknown>)[step];
  }
  return value;
}
