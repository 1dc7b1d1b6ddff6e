import { relative, resolve } from "node:path";

/** A path as people know it: from this folder where it lies below, else whole. */
export function shownPath(path: string): string {
  const from = relative("", resolve(path));
  return from.startsWith("..") ? resolve(path) : from || ".";
}
