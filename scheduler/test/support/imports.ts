/** Helpers for tests of the importers: sample files, a fixed time for the import, and functions that read findings. */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import type { Findings } from "../../src/importers/findings.ts";
import { readWritten, writtenTask } from "../../src/task/written.ts";

export const sample = (path: string) => ({
  path,
  text: readFileSync(new URL(`../../../examples/imports/${path}`, import.meta.url), "utf8"),
});
export const utc = { zone: "UTC", nowMs: Date.UTC(2026, 10, 26) };
export const [past, coming] = ["2010-01-01T00:00:00Z", "2031-01-01T00:00:00Z"];
export const now = "2026-11-26T00:00:00.000Z";
export const tasksOf = ({ tasks }: Findings) => Object.fromEntries(tasks.map(({ name, written }) => [name, written]));
export const told = ({ remarks }: Findings, kind: string) =>
  remarks.filter((remark) => remark.kind === kind).map(({ source, message }) => `${source}: ${message}`);
/** Expects that the task file that the importer wrote can be applied without changes. */
export const readable = ({ tasks }: Findings) => {
  for (const { name, written } of tasks)
    expect(writtenTask(readWritten(name, structuredClone(written)))).toEqual(written);
};
