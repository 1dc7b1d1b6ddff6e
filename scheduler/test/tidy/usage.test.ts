import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const { scripts } = JSON.parse(readFileSync(`${root}/package.json`, "utf8")) as { scripts: Record<string, string> };
const ours = Object.entries(scripts).flatMap(([name, command]) => {
  const [, file] = /^node (scripts\/\S+)$/.exec(command) ?? [];
  return file === undefined ? [] : [{ name, file }];
});

it.each(ours)("`npm run $name -- --help` describes its options, and does nothing", ({ name, file }) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, "--help"], { cwd: root, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toMatch(new RegExp(`^.*npm (?:run )?${name}\\b`, "m"));
  expect(stdout).not.toMatch(/\d+ passed|^ ?\*/m);
});

it.each(["simulate", "faults", "fuzz", "soak", "rolling", "steady", "timing", "image"])(
  "`npm run prove -- %s --help` describes its options",
  (name) => {
    const args = ["scripts/prove.mjs", name, "--help"];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`^.*npm run prove -- ${name}\\b`, "m"));
    expect(stdout).not.toMatch(/\d+ passed|^ ?\*/m);
  },
);

it("each bench describes its question and its options", () => {
  const { stdout } = spawnSync(process.execPath, ["scripts/bench.mjs", "--help"], { cwd: root, encoding: "utf8" });
  const questions = stdout.split("\n").slice(2, -1);
  expect(questions.length).toBeGreaterThan(20);
  for (const line of questions) expect(line).toMatch(/^ {2}\S+ +\S.*[?.]/);
});
