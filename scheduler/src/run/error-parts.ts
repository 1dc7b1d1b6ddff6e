import { isCarillonError, messageOf } from "../base/errors.ts";
import { limits } from "../base/limits.ts";

const stackLength = 4_000;
const codeLength = 100;

/** The text is cut first, because a thrown value may be as large as a string can be. */
export const textOf = (thrown: unknown): string => clean(messageOf(thrown).slice(0, limits.errorMessageLength));

/** The stored parts of any thrown value; a CarillonError is described fully by its code and message. */
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
    // The value throws when its properties are read; `textOf` reports that.
    return {};
  }
}

/** Replaces NUL characters and lone surrogates, because PostgreSQL's jsonb can hold neither. */
function clean(text: string): string {
  return Buffer.from(text.replaceAll("\0", "\ufffd")).toString();
}
