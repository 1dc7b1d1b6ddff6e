import { CarillonError, messageOf } from "./errors.ts";
import { endOfString, inexactNumbers } from "./json-numbers.ts";
import { limits } from "./limits.ts";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Matches an escape of NUL or of half a surrogate pair in the output of JSON.stringify, but not a backslash that is itself escaped. */
const unstorable = /(?:^|[^\\])(?:\\\\)*\\u(?:0000|d[89a-f])/;

/**
 * Converts a value to JSON text that the store accepts; `undefined` means "no payload" and gives null.
 * @param replaced a replacer for JSON.stringify
 * @throws PAYLOAD_NOT_JSON, or PAYLOAD_TOO_LARGE above limits.payloadBytes of UTF-8; `what` is the value's name in the message
 */
export function jsonText(
  value: unknown,
  what: string,
  replaced?: (name: string, value: unknown) => unknown,
): string | null {
  if (value === undefined) return null;
  let text: string | undefined;
  try {
    text = JSON.stringify(value, replaced);
  } catch (cause) {
    throw new CarillonError("PAYLOAD_NOT_JSON", `${what} cannot be written as JSON: ${messageOf(cause)}`, {
      cause,
    });
  }
  if (text === undefined) {
    throw new CarillonError("PAYLOAD_NOT_JSON", `${what} is a ${typeof value}, which JSON does not have`);
  }
  if (isDeep(text)) {
    throw new CarillonError("PAYLOAD_NOT_JSON", `${what} is nested more than ${limits.jsonDepth} levels deep`, {
      hint: "Whoever reads it would run out of stack. Flatten it, or pass it as a text.",
    });
  }
  // PostgreSQL's jsonb accepts neither. The check here names the value in the error, and keeps one value from failing a whole
  // batch.
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
  // A replacer decides about values that JSON does not have, so the check is skipped if the caller passes one.
  const lost = replaced === undefined ? lostIn(value, []) : undefined;
  if (lost !== undefined) {
    throw new CarillonError("PAYLOAD_NOT_JSON", `${what} has ${lost}, which JSON does not have`, {
      hint: "JSON.stringify would leave it out, or make null or {} of it.",
    });
  }
  return text;
}

/**
 * Finds the first part of a value, apart from undefined, that JSON.stringify omits or turns into null or {}, and describes it with
 * its path. Objects with a `toJSON` method (dates) are not examined. The value has been stringified within the limits before, so it
 * has no cycle and is not too deep.
 */
function lostIn(value: unknown, path: string[]): string | undefined {
  const at = () => (path.length > 0 ? ` at ${path.join(".")}` : "");
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${value}${at()}`;
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}${at()}`;
  if (value === null || typeof value !== "object" || typeof (value as { toJSON?: unknown }).toJSON === "function")
    return undefined;
  const tag = Object.prototype.toString.call(value).slice("[object ".length, -1);
  if (contentless.has(tag)) return `a value of the type ${tag}${at()}`;
  for (const name of Object.keys(value)) {
    path.push(name);
    const lost = lostIn((value as Record<string, unknown>)[name], path);
    if (lost !== undefined) return lost;
    path.pop();
  }
  return undefined;
}

/** Types whose content JSON.stringify ignores. They are recognised by their tags, which are the same in every realm. */
const contentless = new Set(["Map", "Set", "WeakMap", "WeakSet", "Error", "Promise", "RegExp", "ArrayBuffer"]);

/** True if the JSON text is deeper than limits.jsonDepth. Short texts cannot be that deep, so most texts are not scanned. */
function isDeep(text: string): boolean {
  if (text.length <= 2 * limits.jsonDepth) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === openList || code === openObject) {
      if (++depth > limits.jsonDepth) return true;
    } else if (code === closeList || code === closeObject) depth--;
  }
  return false;
}

const [quote, openList, closeList, openObject, closeObject] = [0x22, 0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Parses JSON that a user typed or a client sent.
 * @param what the text's name for messages: "--payload", "the body"
 * @throws PAYLOAD_NOT_JSON for a number that would lose precision; SyntaxError as JSON.parse
 */
export function readJson(text: string, what: string): unknown {
  const value: unknown = JSON.parse(text);
  refuseInexact(text, what);
  return value;
}

/** @param text JSON that has been parsed @throws PAYLOAD_NOT_JSON with the path of the first number that would lose precision */
export function refuseInexact(text: string, what: string): void {
  const [found] = inexactNumbers(text);
  if (found === undefined) return;
  const path = found.path.join(".");
  throw new CarillonError("PAYLOAD_NOT_JSON", `${what} has ${inexactWords(found.number, path)}`, {
    path,
    hint: "Give it as a text, in quotes.",
  });
}

/** Describes a number that would lose precision, for a message. @param number as written in the text */
export function inexactWords(number: string, path: string): string {
  const shown = number.length <= shownLength ? number : `${number.slice(0, shownLength)}…`;
  return `${shown}${path === "" ? "" : ` at ${path}`}, which a number cannot hold exactly`;
}

/** Formats any value for a message, shortened to 200 characters, including values that JSON does not have. */
export function shownValue(value: unknown): string {
  try {
    const text = JSON.stringify(value) ?? String(value);
    return text.length <= shownLength ? text : `${text.slice(0, shownLength)}…`;
  } catch {
    // JSON.stringify fails for a bigint and for an object that is circular or too deep.
    return `something of the type ${typeof value}`;
  }
}
const shownLength = 200;

/** Returns the same text for the same content, independent of the order of object keys. */
export function sortedJson(value: unknown): string {
  if (value === null) return "null";
  if (typeof value !== "object")
    return typeof value === "number" && Number.isFinite(value) ? `${value}` : JSON.stringify(value);
  if (typeof (value as { toJSON?: unknown }).toJSON === "function")
    return sortedJson(JSON.parse(JSON.stringify(value)));
  if (Array.isArray(value)) return `[${value.map((part) => sortedJson(part) ?? "null").join(",")}]`;
  const parts: string[] = [];
  for (const key of sortedKeys(value)) {
    const part = sortedJson((value as Record<string, unknown>)[key]);
    // Omit values that JSON cannot express, as JSON.stringify does.
    if (part !== undefined) parts.push(`${plainKey.test(key) ? `"${key}"` : JSON.stringify(key)}:${part}`);
  }
  return `{${parts.join(",")}}`;
}

const plainKey = /^\w+$/;
const startsWithDigit = /^\d/;

/** Returns the sorted keys of an object, but numeric keys first and in numeric order, as JavaScript enumerates the keys of an object. */
function sortedKeys(value: object): string[] {
  const keys = Object.keys(value).sort();
  return keys.some((key) => startsWithDigit.test(key))
    ? Object.keys(Object.fromEntries(keys.map((key) => [key, null])))
    : keys;
}
