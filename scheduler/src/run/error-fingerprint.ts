import { createHash } from "node:crypto";
import type { Json } from "../base/json.ts";

/** Only this many characters of a message are used; the rest is mostly data. */
const messageLength = 1_000;

/** Why a run failed, without the details that differ between failures with the same cause. */
export interface Reason {
  /** The error's code; "" if it has none. */
  code: string;
  words: string;
}

/**
 * Removes data from an error message: quoted texts, numbers, ids, hexadecimal numbers. Failures with the same cause then usually
 * give the same text. A word with a digit counts as data, because it is more often an id than a name.
 */
export function normalised(message: string): string {
  return message
    .slice(0, messageLength)
    .replace(/"[^"]*"|`[^`]*`|“[^”]*”|«[^»]*»/g, "…")
    .replace(/(?<![\p{L}\p{N}])'[^']*'(?![\p{L}\p{N}])/gu, "…")
    .replace(/[\p{L}\p{N}_-]*\p{N}[\p{L}\p{N}_-]*/gu, "#")
    .replace(/\b[a-f]{8,}\b/gi, "#")
    .replace(/#(?:[\s,.:;/+-]+#)+/g, "#")
    .replace(/\s+/g, " ")
    .trim();
}

/** @param error the error as stored with the run: an object with a message and possibly a code, or any other value that was thrown */
export function reasonOf(error: Json): Reason {
  if (error === null) return { code: "", words: "" };
  if (typeof error !== "object" || Array.isArray(error))
    return { code: "", words: normalised(typeof error === "string" ? error : JSON.stringify(error)) };
  const { code, message } = error;
  return {
    code: typeof code === "string" ? code.slice(0, 100) : "",
    words: normalised(typeof message === "string" ? message : JSON.stringify(error)),
  };
}

/** Returns twelve hexadecimal digits that are equal for failures with the same reason, on every node. */
export function fingerprintOf(error: Json): string {
  const { code, words } = reasonOf(error);
  return createHash("sha256").update(`${code}\n${words}`).digest("hex").slice(0, 12);
}

/** Like `fingerprintOf`, for an error that is given as JSON text. */
export function fingerprintOfText(text: string | null): string {
  return fingerprintOf(text === null ? null : (JSON.parse(text) as Json));
}
