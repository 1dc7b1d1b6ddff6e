import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { wholeLines } from "./whole-lines.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "carillon-lines-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("a line is read once its newline is written", () => {
  const path = join(folder, "log");
  writeFileSync(path, "");
  expect(wholeLines(path)).toEqual([]);
  appendFileSync(path, "12 1 7\n13 1");
  expect(wholeLines(path)).toEqual(["12 1 7"]);
  appendFileSync(path, " 7\n");
  expect(wholeLines(path)).toEqual(["12 1 7", "13 1 7"]);
});
