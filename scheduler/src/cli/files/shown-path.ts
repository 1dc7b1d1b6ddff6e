import { isAbsolute, relative, resolve } from "node:path";

/** Returns a path as it is shown to users: relative if it is below the current folder, else absolute. */
export function shownPath(path: string): string {
  const from = relative("", resolve(path));
  // On Windows, the relative path to another drive is absolute.
  return /^\.\.(?:[\\/]|$)/.test(from) || isAbsolute(from) ? resolve(path) : from || ".";
}
