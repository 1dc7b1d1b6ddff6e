/** Links packages for copies of compiled code in other folders. */
import { existsSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { root } from "./ready.mjs";

/**
 * Links the installed packages of one part (by default the scheduler's) at `link`, so that a compiled copy there finds them.
 * @param {string} link
 */
export function linkPackages(link, packages = join(root, "scheduler/node_modules")) {
  rmSync(link, { force: true });
  if (existsSync(packages)) symlinkSync(packages, link);
}
