import { isCarillonError, messageOf } from "../base/errors.ts";
import { limits } from "../base/limits.ts";

const stackLength = 4_000;
const codeLength = 100;

/** Bounded before anything else: what a handler throws may be as large as a string can be. */
export const textOf = (thrown: unknown): string => clean(messageOf(thrown).slice(0, limits.errorMessageLength));

/** What is kept of anything thrown; a CarillonError says all by its code and message. */
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
    // Made so that it throws when it is looked at: its text says that.
    return {};
  }
}

/** PostgreSQL's jsonb holds no NUL and no lone surrogate; UTF-8 has none of the latter. */
function clean(text: string): string {
  return Buffer.from(text.replaceAll("\0", "\ufffd")).toString();
}
