import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";

const namePattern = /^[\p{L}\p{N}][\p{L}\p{N}._:/@-]*$/u;

/** @throws TASK_INVALID if the name is not 1 to `longest` permitted characters @param what what is named, for the message */
export function checkName(what: string, name: unknown, longest: number): asserts name is string {
  if (typeof name !== "string" || name.length > longest || !namePattern.test(name)) {
    throw new CarillonError("TASK_INVALID", `${what} cannot be ${shownValue(name)}`, {
      hint: `Use 1 to ${longest} letters, digits and . _ : / @ -, the first a letter or digit.`,
    });
  }
}

const secretName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;

/** Matches the placeholder of a secret in a header: {{secret:NAME}}. */
export const secretPlaces = /\{\{secret:([^{}]*)\}\}/g;

/** @throws SECRET_INVALID if the name has other than the permitted characters */
export function checkSecretName(name: string): void {
  if (secretName.test(name)) return;
  throw new CarillonError("SECRET_INVALID", `a secret cannot be called ${JSON.stringify(name.slice(0, 200))}`, {
    hint: "Use letters, digits, _, . and -, at most 100, a letter or digit first.",
  });
}
