import { CarillonError } from "../base/errors.ts";

/** What a program may give for an option; what a text or a number must be besides is checked where it is read. */
export type OptionKind = "text" | "text or texts" | "texts" | "flag" | "number" | "duration" | "object";

const kinds: Record<OptionKind, { is: (value: unknown) => boolean; means: string }> = {
  text: { is: (value) => typeof value === "string", means: "a text" },
  "text or texts": { is: (value) => typeof value === "string" || areTexts(value), means: "a text, or a list of texts" },
  texts: { is: areTexts, means: "a list of texts" },
  flag: { is: (value) => typeof value === "boolean", means: "true or false" },
  number: { is: (value) => typeof value === "number", means: "a number" },
  duration: {
    is: (value) => typeof value === "number" || typeof value === "string",
    means: 'a duration, such as "15m", or milliseconds',
  },
  object: {
    is: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    means: "an object",
  },
};

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && Array.from(value).every((one) => typeof one === "string");
}

/** Whoever writes JavaScript, or reads options from a file, has no compiler that says so. @throws OPTION_INVALID */
export function checkKinds(options: object, known: Readonly<Record<string, OptionKind>>): void {
  for (const [name, value] of Object.entries(options)) {
    const kind = Object.hasOwn(known, name) ? known[name] : undefined;
    if (kind === undefined) {
      throw new CarillonError("OPTION_INVALID", `there is no option ${JSON.stringify(name)}`, {
        hint: `The options are ${Object.keys(known).join(", ")}.`,
      });
    }
    if (value === undefined || kinds[kind].is(value)) continue;
    throw new CarillonError("OPTION_INVALID", `${name} must be ${kinds[kind].means}, and is ${typeOf(value)}`);
  }
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `of the type ${typeof value}`;
}
