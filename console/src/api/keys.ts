/** Idempotency keys: a request that is repeated with its key is carried out once. */

/** A random key. `crypto.randomUUID` is not used because it exists only on secure origins (https or localhost). */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Returns a function that gives the idempotency key of a request. An identical request gets the same key, for example when it is
 * sent again after a lost answer. A changed request gets a new key, because the server refuses a different request under a used
 * key. Use this only for requests with `ifVersion`, so that the server does not carry out both the first and the changed request.
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
