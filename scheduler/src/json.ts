import { CarillonError, messageOf } from "./errors.ts";
import { limits } from "./limits.ts";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** An escape that JSON.stringify writes only for NUL and lone surrogates; the rest before it are escaped backslashes. */
const unstorable = /(?:^|[^\\])(?:\\\\)*\\u(?:0000|d[89a-f])/;

/**
 * The value as JSON text, ready for the store. `undefined` is "no payload" and gives null.
 * @throws PAYLOAD_NOT_JSON, PAYLOAD_TOO_LARGE (over limits.payloadBytes of UTF-8), naming `what`
 */
export function jsonText(value: unknown, what: string): string | null {
  if (value === undefined) return null;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new CarillonError("PAYLOAD_NOT_JSON", `${what} cannot be written as JSON: ${messageOf(cause)}`, {
      cause,
    });
  }
  if (text === undefined) {
    throw new CarillonError("PAYLOAD_NOT_JSON", `${what} is a ${typeof value}, which JSON does not have`);
  }
  // PostgreSQL's jsonb has neither; refused here, the culprit is named and no batch fails for it.
  if (text.includes("\\u") && unstorable.test(text)) {
    throw new CarillonError(
      "PAYLOAD_NOT_JSON",
      `${what} contains a NUL character or half of a surrogate pair, which the store cannot hold`,
    );
  }
  const bytes = text.length > limits.payloadBytes / 3 ? Buffer.byteLength(text) : text.length;
  if (bytes > limits.payloadBytes) {
    throw new CarillonError(
      "PAYLOAD_TOO_LARGE",
      `${what} is ${bytes} bytes of JSON; the limit is ${limits.payloadBytes}`,
      {
        hint: "Keep the data elsewhere and pass its address.",
      },
    );
  }
  return text;
}

/** The same text for the same content, whatever order the keys of its objects came in. */
export function sortedJson(value: unknown): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (typeof (value as { toJSON?: unknown }).toJSON === "function")
    return sortedJson(JSON.parse(JSON.stringify(value)));
  if (Array.isArray(value)) return `[${value.map((part) => sortedJson(part) ?? "null").join(",")}]`;
  const parts: string[] = [];
  for (const key of sortedKeys(value)) {
    const part = sortedJson((value as Record<string, unknown>)[key]);
    // As JSON.stringify leaves out what JSON does not have.
    if (part !== undefined) parts.push(`${JSON.stringify(key)}:${part}`);
  }
  return `{${parts.join(",")}}`;
}

/** Numbers first and by their size, which is the order that an object keeps them in. */
function sortedKeys(value: object): string[] {
  const keys = Object.keys(value).sort();
  return keys.some((key) => /^\d/.test(key)) ? Object.keys(Object.fromEntries(keys.map((key) => [key, null]))) : keys;
}
