/** What a compiled copy of a part of the scheduler needs beside what the compiler writes. */
import { existsSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { root } from "./ready.mjs";

/** A compiled copy finds packages that are a part's alone, unless told otherwise the scheduler's. @param {string} link */
export function linkPackages(link, packages = join(root, "scheduler/node_modules")) {
  rmSync(link, { force: true });
  if (existsSync(packages)) symlinkSync(packages, link);
}
