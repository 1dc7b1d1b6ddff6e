import { CarillonError, type ErrorCode, isCarillonError } from "../base/errors.ts";
import { meant } from "../base/nearest.ts";
import { namesOf } from "./complete.ts";
import type { Named } from "./completion.ts";
import type { CommonOptions } from "./store-choice.ts";

const unknown: Partial<Record<ErrorCode, Named>> = {
  TASK_UNKNOWN: "tasks",
  CALENDAR_UNKNOWN: "calendars",
  GROUP_UNKNOWN: "groups",
  KEY_NAME_UNKNOWN: "keys",
  NODE_UNKNOWN: "nodes",
  PROFILE_UNKNOWN: "profiles",
};

/** If a word of the command line is an unknown name, adds the most similar existing name, if there is one, to the error. */
export async function withNearName(error: unknown, words: readonly string[], options: CommonOptions): Promise<unknown> {
  const thing = isCarillonError(error) ? unknown[error.code] : undefined;
  if (!isCarillonError(error) || thing === undefined) return error;
  const word = words.find((one) => error.message.includes(one));
  if (word === undefined || error.message.includes("did you mean")) return error;
  // Only names that begin with the word's namespace and its first letter are compared.
  const beginning = word.slice(0, word.lastIndexOf("/") + 2);
  try {
    const near = meant(word, await namesOf(thing, beginning, options));
    const { code, hint, cause, path } = error;
    return new CarillonError(code, `${error.message}${near}`, { hint, cause, path });
  } catch {
    return error; // The names cannot be read, so the original error is reported.
  }
}
