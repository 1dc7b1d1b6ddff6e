import { CarillonError } from "../base/errors.ts";
import { meant } from "../base/nearest.ts";

/** The type of an option's value. Further conditions on a text or number are checked where the option is used. */
export type OptionKind =
  | "text"
  | "text or texts"
  | "text or texts by name"
  | "texts by name"
  | "texts"
  | "flag"
  | "number"
  | "duration"
  | "object";

const kinds: Record<OptionKind, { is: (value: unknown) => boolean; means: string }> = {
  text: { is: (value) => typeof value === "string", means: "a text" },
  "text or texts": { is: (value) => typeof value === "string" || areTexts(value), means: "a text, or a list of texts" },
  "text or texts by name": {
    is: (value) => typeof value === "string" || areNamedTexts(value),
    means: "a text, or an object of texts",
  },
  "texts by name": { is: areNamedTexts, means: "an object of texts" },
  texts: { is: areTexts, means: "a list of texts" },
  flag: { is: (value) => typeof value === "boolean", means: "true or false" },
  number: { is: (value) => typeof value === "number", means: "a number" },
  duration: {
    is: (value) => typeof value === "number" || typeof value === "string",
    means: 'a duration, such as "15m", or milliseconds',
  },
  object: {
    is: isObject,
    means: "an object",
  },
};

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && Array.from(value).every((one) => typeof one === "string");
}

function areNamedTexts(value: unknown): boolean {
  return isObject(value) && areTexts(Object.values(value));
}

/**
 * Validates the names and types of options, because no compiler checks them in JavaScript or in a configuration file.
 * @throws OPTION_INVALID
 */
export function checkKinds(options: object, known: Readonly<Record<string, OptionKind>>): void {
  for (const [name, value] of Object.entries(options)) {
    const kind = Object.hasOwn(known, name) ? known[name] : undefined;
    if (kind === undefined) {
      const names = Object.keys(known);
      throw new CarillonError("OPTION_INVALID", `there is no option ${JSON.stringify(name)}${meant(name, names)}`, {
        hint: `The options are ${names.join(", ")}.`,
        path: name,
      });
    }
    if (value === undefined || kinds[kind].is(value)) continue;
    throw new CarillonError("OPTION_INVALID", `${name} must be ${kinds[kind].means}, and is ${typeOf(value)}`, {
      path: name,
    });
  }
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `of the type ${typeof value}`;
}
