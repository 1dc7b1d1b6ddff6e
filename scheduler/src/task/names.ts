import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";

const namePattern = /^[\p{L}\p{N}][\p{L}\p{N}._:/@-]*$/u;

/** @throws TASK_INVALID */
export function checkName(what: string, name: unknown, longest: number): asserts name is string {
  if (typeof name !== "string" || name.length > longest || !namePattern.test(name)) {
    throw new CarillonError("TASK_INVALID", `${what} cannot be ${shownValue(name)}`, {
      hint: `Use 1 to ${longest} letters, digits and . _ : / @ -, the first a letter or digit.`,
    });
  }
}
