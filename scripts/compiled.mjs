/** What a compiled copy of a part of the scheduler needs beside what the compiler writes. */
import { copyFileSync, existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./ready.mjs";

/** A compiled copy finds packages that are a part's alone, unless told otherwise the scheduler's. @param {string} link */
export function linkPackages(link, packages = join(root, "scheduler/node_modules")) {
  rmSync(link, { force: true });
  if (existsSync(packages)) symlinkSync(packages, link);
}

/** A program that is no TypeScript, where it stands beside what uses it. @param {string} path @param {string} compiled */
export function copyFile(path, compiled) {
  const target = join(compiled, path);
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(join(root, path), target);
}
