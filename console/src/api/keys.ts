/** Idempotency keys: a request that is repeated with its key is carried out once. */

/** `crypto.randomUUID` is there on safe origins alone. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The keys of one form: the same request, repeated for example after a lost answer, gets the same key. A changed request gets
 * another key, since the server refuses a different request under a used key. Use it only where a version keeps both from being
 * carried out.
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
