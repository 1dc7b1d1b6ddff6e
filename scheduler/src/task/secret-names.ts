import { CarillonError } from "../base/errors.ts";

const names = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;

/** In a header: {{secret:NAME}}. */
export const secretPlaces = /\{\{secret:([^{}]*)\}\}/g;

/** @throws SECRET_INVALID, which never tells the value */
export function checkSecretName(name: string): void {
  if (names.test(name)) return;
  throw new CarillonError("SECRET_INVALID", `a secret cannot be called ${JSON.stringify(name.slice(0, 200))}`, {
    hint: "Use letters, digits, _, . and -, at most 100, a letter or digit first.",
  });
}
