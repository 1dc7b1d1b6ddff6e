/** Prints a program's usage for `--help`: the first docstring in its file. Works before anything is installed, compiled or started. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./ready.mjs";

/** @param {string} source the program's file, from the root of the repository */
export function usageOf(source) {
  const [, text = ""] = /\/\*\*(.*?)\*\//s.exec(readFileSync(join(root, source), "utf8")) ?? [];
  return text.replaceAll(/^ ?\* ?/gm, "").trim();
}

/** @param {string} source @returns {boolean} whether help was requested; it has been printed then */
export function showsUsage(source) {
  if (!process.argv.slice(2).some((argument) => argument === "--help" || argument === "-h")) return false;
  process.stdout.write(`${usageOf(source)}\n`);
  return true;
}
