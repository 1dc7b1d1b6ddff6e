import { relative, resolve } from "node:path";

/** A path as users see it: relative if it lies below the current folder, else absolute. */
export function shownPath(path: string): string {
  const from = relative("", resolve(path));
  return from.startsWith("..") ? resolve(path) : from || ".";
}
