/** Generates from a zod schema a value that the schema accepts, so that new fields are fuzzed without a change here. */
import type { z } from "zod";

interface Def {
  readonly type: string;
  readonly innerType?: Schema;
  readonly element?: Schema;
  readonly valueType?: Schema;
  readonly shape?: Record<string, Schema>;
  readonly options?: readonly Schema[];
  readonly entries?: Record<string, string>;
  readonly values?: readonly unknown[];
  readonly in?: Schema;
  readonly left?: Schema;
  readonly items?: readonly Schema[];
  readonly format?: string;
  readonly getter?: () => Schema;
}
interface Schema {
  readonly def: Def;
  readonly minLength?: number | null;
  readonly minValue?: number | null;
}

const texts = ["settle", "5m", "2027-01-01T00:00:00Z", "a/b c"];

/** @param variant selects one of several values; odd variants omit optional fields */
export function goodValue(schema: z.ZodType, variant: number): unknown {
  return valueFor(schema as unknown as Schema, variant, 0);
}

function valueFor({ def, minValue }: Schema, variant: number, depth: number): unknown {
  const inner = (one: Schema | undefined) => (one ? valueFor(one, variant, depth + 1) : null);
  switch (def.type) {
    case "object":
      return Object.fromEntries(
        Object.entries(def.shape ?? {})
          .filter(([, part]) => variant % 2 === 0 || !(part.def.type === "optional" || part.def.type === "default"))
          .map(([name, part]) => [name, inner(part)]),
      );
    case "array":
      return depth > 6 ? [] : [inner(def.element)];
    case "tuple":
      return (def.items ?? []).map(inner);
    case "record":
      return { a: inner(def.valueType) };
    case "union":
      return inner(def.options?.[variant % (def.options.length || 1)]);
    case "intersection":
      return inner(def.left);
    case "pipe":
      return inner(def.in);
    case "lazy":
      return depth > 6 ? null : inner(def.getter?.());
    case "optional":
    case "nullable":
    case "default":
    case "prefault":
    case "readonly":
    case "catch":
      return inner(def.innerType);
    case "enum":
      return Object.values(def.entries ?? {})[variant % Math.max(1, Object.keys(def.entries ?? {}).length)];
    case "literal":
      return def.values?.[0];
    case "string":
      return def.format === "datetime" ? "2027-01-01T00:00:00Z" : texts[variant % texts.length];
    case "number":
    case "int":
      return Math.max(1, Number.isFinite(minValue) ? (minValue ?? 1) : 1) + variant;
    case "boolean":
      return variant % 2 === 0;
    case "null":
      return null;
    default:
      return { any: ["json", variant] };
  }
}
