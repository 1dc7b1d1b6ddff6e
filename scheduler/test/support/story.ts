/**
 * Plays the examples of the OpenAPI page in order: requests use the values that this server generated, and answers are compared by
 * their shape.
 */

type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Fields with numbers that a server generates. Other numbers are counts, versions and durations, which may differ from the
 * example's.
 */
const drawnNumbers = new Set(["run", "operation", "message", "silence", "signIn"]);
/** Fields with texts that differ between servers. All other texts must equal the example's. */
const drawnTexts = new Set([
  ...["node", "host", "cluster", "coordination", "address", "version", "release"],
  ...["plan", "secret", "uri", "recoveryCodes", "fingerprint", "hash", "content", "head", "anchor", "key", "to"],
  ...["id", "next", "tail", "agent", "note"],
]);
/** The stored definition: an example may show a part of it. */
const shownInPart = new Set(["definition"]);

const isTime = (text: string) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text);

export class Story {
  /** The server's generated values, by the example's values. */
  readonly #drawn = new Map<unknown, unknown>();

  /** Makes later requests use `real` instead of the example's value. */
  draw(shown: string, real: unknown): void {
    this.#drawn.set(shown, real);
  }

  /** Replaces the example's values in a request by the values of this server. */
  placed<Value>(value: Value, name = ""): Value {
    if (Array.isArray(value)) return value.map((one) => this.placed(one, name)) as Value;
    if (isFields(value))
      return Object.fromEntries(Object.entries(value).map(([field, one]) => [field, this.placed(one, field)])) as Value;
    return (this.#drawn.get(typeof value === "number" ? `${name} ${value}` : value) ?? value) as Value;
  }

  /** The places where the answer's shape differs from the example's; also records the generated values. */
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
