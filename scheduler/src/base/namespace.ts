/**
 * A namespace is the part of a name before its first `/`: the task `billing/settle` is in `billing`, as are the group `billing/gpu`, the
 * calendar `billing/bank` and all runs of that task. A name without a `/` is in `default`, and the groups and calendars of `default` may be
 * used from every namespace. docs/access/namespaces.md also describes the alternative that was rejected.
 */
import { CarillonError } from "./errors.ts";

export const defaultNamespace = "default";

export function namespaceOf(name: string): string {
  const at = name.indexOf("/");
  return at === -1 ? defaultNamespace : name.slice(0, at);
}

export const namespaceLength = 100;
const shape = /^[A-Za-z0-9][A-Za-z0-9._:@-]*$/;

/** Checks and returns the name of a namespace. @throws OPTION_INVALID */
export function checkNamespace(name: string): string {
  if (name.length <= namespaceLength && shape.test(name)) return name;
  throw new CarillonError("OPTION_INVALID", `a namespace cannot be ${JSON.stringify(name.slice(0, namespaceLength))}`, {
    hint: `Use 1 to ${namespaceLength} letters, digits and . _ : @ -, the first a letter or digit.`,
  });
}
