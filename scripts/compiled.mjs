/** The additions that a compiled copy of a part of the scheduler needs. */
import { existsSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { root } from "./ready.mjs";

/** Links the packages that belong to one part, by default the scheduler's, so that a compiled copy finds them. @param {string} link */
export function linkPackages(link, packages = join(root, "scheduler/node_modules")) {
  rmSync(link, { force: true });
  if (existsSync(packages)) symlinkSync(packages, link);
}
