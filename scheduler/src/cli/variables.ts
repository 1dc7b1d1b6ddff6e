import { CarillonError } from "../base/errors.ts";

/**
 * Replaces each string "env:NAME" in the value, at any depth, by the environment variable NAME.
 * @throws OPTION_INVALID if the variable is not set, or is empty
 */
export function fromEnvironment(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromEnvironment);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fromEnvironment(one)]));
  const [, name] = typeof value === "string" ? (/^env:([A-Za-z_]\w*)$/.exec(value) ?? []) : [];
  if (name === undefined) return value;
  const found = process.env[name];
  if (found) return found;
  throw new CarillonError("OPTION_INVALID", `the variable ${name}, which a file of options names, is not set`, {
    hint: `Set ${name}.`,
  });
}
