import { createHash } from "node:crypto";
import type { Json } from "../base/json.ts";

/** Only this many characters of a message describe the failure; the rest is mostly data. */
const messageLength = 1_000;

/** Why a run failed, without the parts that differ between failures of one cause. */
export interface Reason {
  /** The error's code; "" if it had none. */
  code: string;
  words: string;
}

/**
 * Returns a message without its data: quoted texts, numbers, ids, hex. The result is the same for failures of one cause, and two causes
 * that differ in words have different results. A word that contains a digit counts as data, because it is more often an id than a name.
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

/** @param error as the run's record stores it: an object with a message and perhaps a code, or anything that was thrown */
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

/** Returns twelve hexadecimal digits that are the same for all failures of one reason, on every node and in every version. */
export function fingerprintOf(error: Json): string {
  const { code, words } = reasonOf(error);
  return createHash("sha256").update(`${code}\n${words}`).digest("hex").slice(0, 12);
}

/** The same as `fingerprintOf`, for the JSON text that a verdict carries. */
export function fingerprintOfText(text: string | null): string {
  return fingerprintOf(text === null ? null : (JSON.parse(text) as Json));
}
