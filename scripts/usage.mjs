/** The comment above a program's code describes its arguments. `--help` prints it, before anything is installed, compiled or started. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./ready.mjs";

/** @param {string} source of the program, from the root */
export function usageOf(source) {
  const [, text = ""] = /\/\*\*(.*?)\*\//s.exec(readFileSync(join(root, source), "utf8")) ?? [];
  return text.replaceAll(/^ ?\* ?/gm, "").trim();
}

/** @param {string} source @returns {boolean} whether help was requested, and printed */
export function showsUsage(source) {
  if (!process.argv.slice(2).some((argument) => argument === "--help" || argument === "-h")) return false;
  process.stdout.write(`${usageOf(source)}\n`);
  return true;
}
