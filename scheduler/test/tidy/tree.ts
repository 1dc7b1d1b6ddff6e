import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A file of the repository; its path is relative to the root of the repository and has forward slashes. */
export interface HouseFile {
  readonly path: string;
  readonly text: string;
}

/**
 * A rule for the files of the repository. Returns its violations as lines of the form `path:line what`. A rule is a pure function, so that
 * a test can show that it detects a violation.
 */
export type Rule = (files: readonly HouseFile[]) => readonly string[];

/** Returns every text file that git tracks, or that it would track because it is not ignored. */
export function readHouse(): readonly HouseFile[] {
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 16 * 1024 * 1024,
  });
  const files: HouseFile[] = [];
  for (const path of new Set(listed.split("\0").filter(Boolean))) {
    if (!existsSync(join(root, path))) continue; // deleted, but the deletion is not committed yet
    const text = readFileSync(join(root, path), "utf8");
    if (!text.includes("\0")) files.push({ path, text });
  }
  return files;
}

export function isCode(file: HouseFile): boolean {
  return /\.(?:ts|tsx|mts|mjs|js)$/.test(file.path);
}

export function isTest(file: HouseFile): boolean {
  return /\.test\.tsx?$/.test(file.path) || /^[^/]+\/test\//.test(file.path);
}

/** True if the file is compiled into the published package `carillon`. */
export function isSource(file: HouseFile): boolean {
  return /^scheduler\/src\/.*\.ts$/.test(file.path) && !isTest(file);
}

export function at(file: HouseFile, index: number, what: string): string {
  const line = file.text.slice(0, index).split("\n").length;
  return `${file.path}:${line} ${what}`;
}
