import { isCarillonError, messageOf } from "../base/errors.ts";
import { limits } from "../base/limits.ts";

const stackLength = 4_000;
const codeLength = 100;

/** Returns the message of a thrown value. It is shortened before it is cleaned, because it may be as long as a string can be. */
export const textOf = (thrown: unknown): string => clean(messageOf(thrown).slice(0, limits.errorMessageLength));

/**
 * Returns the parts of a thrown value that are stored. The stack of a CarillonError is left out: its code and message describe it
 * fully.
 */
export function errorParts(thrown: unknown): { code?: string; message: string; stack?: string } {
  const { code, stack } = partsOf(thrown);
  return {
    ...(typeof code === "string" ? { code: clean(code.slice(0, codeLength)) } : {}),
    message: textOf(thrown),
    ...(typeof stack === "string" && stack !== "" ? { stack: clean(stack.slice(0, stackLength)) } : {}),
  };
}

function partsOf(thrown: unknown): { code?: unknown; stack?: unknown } {
  try {
    const code = (thrown as { code?: unknown } | null | undefined)?.code;
    return { code, stack: thrown instanceof Error && !isCarillonError(thrown) ? thrown.stack : undefined };
  } catch {
    // A property of the thrown value throws when it is read; `textOf` describes such a value.
    return {};
  }
}

/** Replaces NUL characters and unpaired surrogates by U+FFFD, because PostgreSQL's jsonb type accepts neither. */
export function clean(text: string): string {
  return Buffer.from(text.replaceAll("\0", "\ufffd")).toString();
}
