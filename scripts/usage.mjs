/** What a program takes is told above its code. `--help` shows that, before anything is installed, compiled or started. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./ready.mjs";

/** @param {string} source of the program, from the root */
export function usageOf(source) {
  const [, text = ""] = /\/\*\*(.*?)\*\//s.exec(readFileSync(join(root, source), "utf8")) ?? [];
  return text.replaceAll(/^ ?\* ?/gm, "").trim();
}

/** @param {string} source @returns {boolean} whether it was asked for, and all is done */
export function showsUsage(source) {
  if (!process.argv.slice(2).some((argument) => argument === "--help" || argument === "-h")) return false;
  process.stdout.write(`${usageOf(source)}\n`);
  return true;
}
