import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** One file of the repository; the path has forward slashes and starts at the repository's root. */
export interface HouseFile {
  readonly path: string;
  readonly text: string;
}

/**
 * One rule of the house: it returns its violations, a line each, as `path:line what`. It is pure, so that a test can show that it fails.
 */
export type Rule = (files: readonly HouseFile[]) => readonly string[];

/** Every text file that git tracks or would track: ignored files do not belong to the house. */
export function readHouse(): readonly HouseFile[] {
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 16 * 1024 * 1024,
  });
  const files: HouseFile[] = [];
  for (const path of new Set(listed.split("\0").filter(Boolean))) {
    if (!existsSync(join(root, path))) continue; // deleted, not committed yet
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

/** Whether the file is compiled into the published package. */
export function isSource(file: HouseFile): boolean {
  return /^scheduler\/src\/.*\.ts$/.test(file.path) && !isTest(file);
}

export function at(file: HouseFile, index: number, what: string): string {
  const line = file.text.slice(0, index).split("\n").length;
  return `${file.path}:${line} ${what}`;
}
