/** Idempotency keys: what is asked again with its key is done once. */

/** `crypto.randomUUID` is there on safe origins alone. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Of one form: what is asked the same again, as after an answer that was lost, has the same key; what was changed in between has
 * another, for under the first it would be refused whatever it is. Only where a version guards against doing both.
 */
export function keys(): (asked: unknown) => string {
  const drawn = new Map<string, string>();
  return (asked) => {
    const said = JSON.stringify(asked);
    const key = drawn.get(said) ?? newKey();
    drawn.set(said, key);
    return key;
  };
}
