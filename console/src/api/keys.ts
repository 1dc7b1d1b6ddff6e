/** Idempotency keys: a request that is repeated with its key is carried out once. */

/** A random key. `crypto.randomUUID` is not used because it exists only on secure origins (https or localhost). */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The keys of one form: the same request, repeated for example after a lost answer, gets the same key. A changed request gets
 * another key, because the server refuses a different request under a used key. Use it only for requests with a version, which
 * prevents that both are carried out.
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
