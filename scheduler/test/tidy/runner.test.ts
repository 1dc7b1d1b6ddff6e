import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";

interface Figures {
  passed: number;
  failures: { file: string; test: string; why: string; ran: boolean }[];
}
interface Runner {
  vitest(run: {
    node: string;
    label: string;
    args: string[];
    env: Record<string, string>;
    whole: boolean;
    expected: string[];
    folder: string;
    output: "ignore";
    leftMs: () => number;
  }): Promise<Figures>;
}
interface Counting {
  figuresOf(text: string, run: { exit: number; whole: boolean; expected?: string[] }): Figures;
}

const root = fileURLToPath(new URL("../../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "carillon-runner-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A project of Vitest with these files, and what the runner of `npm test` makes of it. */
async function run(files: Record<string, string>, expected: string[]): Promise<Figures> {
  const { vitest } = (await import(new URL("../../../scripts/test/vitest.mjs", import.meta.url).href)) as Runner;
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const [path, text] of Object.entries({ "vitest.config.mjs": config, ...files }))
    writeFileSync(join(folder, path), text);
  return await vitest({
    node: process.execPath,
    label: "of-runner",
    args: [],
    env: {},
    whole: true,
    folder,
    output: "ignore",
    leftMs: () => 120_000,
    expected: expected.map((path) => join(folder, path)),
  });
}

const config = 'export default { test: { include: ["*.test.mjs"] } };';
const head = 'import { expect, test } from "vitest";\nimport { existsSync, writeFileSync } from "node:fs";\n';

describe("npm test", { timeout: 120_000 }, () => {
  it("fails what is unsteady, broken, skipped, not loaded, not caught or in no project", async () => {
    const { passed, failures } = await run(
      {
        "unsteady.test.mjs": `${head}test("second time lucky", () => {
          const seen = import.meta.filename + ".seen"; const was = existsSync(seen);
          writeFileSync(seen, ""); expect(was).toBe(true); });`,
        "broken.test.mjs": `${head}test("broken", () => expect(1).toBe(2)); test.skip("skipped", () => {}); test("good", () => {});`,
        "unloaded.test.mjs": 'import "./is-not-there.js";',
        "uncaught.test.mjs": `${head}test("lets go", () => { setTimeout(() => { throw new Error("nobody caught this"); }, 1);
          return new Promise((resolve) => setTimeout(resolve, 50)); });`,
        "forgotten.mjs": "",
      },
      ["broken.test.mjs", "forgotten.mjs"],
    );
    expect(passed).toBe(2);
    expect(failures.map(({ test, why }) => `${test}: ${why}`).sort()).toEqual([
      expect.stringMatching(/^broken: expected 1 to be 2.*\(fails again, alone\)$/),
      "outside of any test: nobody caught this",
      expect.stringMatching(/^second time lucky: .*\(UNSTEADY: passes alone\)$/),
      "skipped: was skipped",
      expect.stringMatching(/^the file itself: .*is-not-there.*\(fails again, alone\)$/),
      "the whole file: is in no project of vitest.config.ts",
    ]);
  });

  it("names each file that did not run when the run was ended early", async () => {
    const { figuresOf } = (await import(
      new URL("../../../scripts/test/figures.mjs", import.meta.url).href
    )) as Counting;
    const start = { event: "start", files: ["/a", "/b"].map((file) => ({ project: "unit", file })) };
    const tests = [{ name: "one", state: "passed", why: "" }];
    const lines = [start, { event: "file", project: "unit", file: "/a", ms: 1, tests, errors: [] }];
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    expect(figuresOf(text, { exit: 130, whole: true })).toEqual({
      passed: 1,
      failures: [
        { file: "/b", test: "the whole file", why: "did not run", ran: false },
        { file: "", test: "the run itself", why: "ended early, with exit code 130", ran: false },
      ],
    });
    expect(figuresOf("", { exit: 1, whole: true }).failures).toHaveLength(1);
  });
});
