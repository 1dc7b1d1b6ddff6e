/** The examples of the OpenAPI page as a story: requests with the values that this server drew, and answers compared by their shape. */

type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Numbers that a server draws. Other numbers are counts, versions and spans: an example's may differ from the answer's. */
const drawnNumbers = new Set(["run", "operation", "message", "silence", "signIn"]);
/** Texts that differ from server to server. Any other text of an answer is as in the example. */
const drawnTexts = new Set([
  ...["node", "host", "cluster", "coordination", "address", "version", "release"],
  ...["plan", "secret", "uri", "recoveryCodes", "fingerprint", "hash", "content", "head", "anchor", "key", "to"],
  ...["id", "next", "tail", "agent", "note"],
]);
/** The stored definition: an example may show a part of it. */
const shownInPart = new Set(["definition"]);

const isTime = (text: string) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text);

export class Story {
  /** The drawn values by those of the examples. */
  readonly #drawn = new Map<unknown, unknown>();

  /** From now on a request has `real` in place of the example's value. */
  draw(shown: string, real: unknown): void {
    this.#drawn.set(shown, real);
  }

  /** An example's request as it is made of this server. */
  placed<Value>(value: Value, name = ""): Value {
    if (Array.isArray(value)) return value.map((one) => this.placed(one, name)) as Value;
    if (isFields(value))
      return Object.fromEntries(Object.entries(value).map(([field, one]) => [field, this.placed(one, field)])) as Value;
    return (this.#drawn.get(typeof value === "number" ? `${name} ${value}` : value) ?? value) as Value;
  }

  /** Where the answer has another shape than the example; drawn values of it are noted. */
  differences(shown: unknown, real: unknown, path: string, name = ""): string[] {
    if (Array.isArray(shown) && Array.isArray(real)) {
      const isAlike = shown.length === 0 ? real.length === 0 : shown.length <= real.length;
      if (!isAlike) return [`${path}: the example has ${shown.length} items, the answer ${real.length}`];
      return shown.flatMap((one, at) => this.differences(one, real[at], `${path}[${at}]`, name));
    }
    if (isFields(shown) && isFields(real)) {
      const foreign = Object.keys(real).filter((field) => !(field in shown) && !shownInPart.has(name));
      return [
        ...foreign.map((field) => `${path}.${field}: not in the example`),
        ...Object.entries(shown).flatMap(([field, one]) =>
          field in real
            ? this.differences(one, real[field], `${path}.${field}`, field)
            : [`${path}.${field}: not in the answer`],
        ),
      ];
    }
    if (typeof shown === "number" && typeof real === "number") {
      if (drawnNumbers.has(name)) this.#drawn.set(`${name} ${shown}`, real);
      return [];
    }
    if (typeof shown === "string" && typeof real === "string" && shown !== real) {
      if (isTime(shown) && isTime(real)) return [];
      if (drawnTexts.has(name)) {
        this.#drawn.set(shown, real);
        return [];
      }
    }
    return shown === real
      ? []
      : [`${path}: ${JSON.stringify(shown)} in the example, ${JSON.stringify(real)} in the answer`];
  }
}
