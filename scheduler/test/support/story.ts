/**
 * Plays the examples of the OpenAPI document in order. Requests use the values that this server has generated. Responses are
 * compared by their shape and by the texts that every server returns alike.
 */

type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Names of fields with numbers that the server generates. Other numbers are counts, versions and durations, which may differ from the
 * example anyway.
 */
const drawnNumbers = new Set(["run", "operation", "message", "silence", "signIn"]);
/** Names of fields with texts that differ between servers. All other texts, except times, must equal those of the example. */
const drawnTexts = new Set([
  ...["node", "host", "cluster", "coordination", "address", "version", "release"],
  ...["plan", "secret", "uri", "recoveryCodes", "fingerprint", "hash", "content", "head", "anchor", "key", "to"],
  ...["id", "next", "tail", "agent", "note"],
]);
/** Names of fields whose object may have more properties than the example shows, such as the stored definition. */
const shownInPart = new Set(["definition"]);

const isTime = (text: string) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text);

export class Story {
  /** The values that this server has generated, by the values in the examples. */
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

  /** Returns the places in which the response differs from the example, and records the values that the server has generated. */
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
