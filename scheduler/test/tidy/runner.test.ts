import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";

interface Failure {
  file: string;
  test: string;
  why: string;
  ran: boolean;
  second?: "passed" | "failed";
}
interface Figures {
  passed: number;
  failures: Failure[];
  tests: string[];
}
interface SetAside {
  file: string;
  test: string;
  since: string;
  reason: string;
  tried: string;
}
interface Gate {
  verdictOf(
    failures: Failure[],
    tests: string[],
    setAside: SetAside[],
  ): { failed: Failure[]; unsteady: Failure[]; aside: Failure[] };
  faultsOfSetAside(list: Partial<SetAside>[], nowMs: number): string[];
  readSetAside(): SetAside[];
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

const script = async <Exports>(name: string) =>
  (await import(new URL(`../../../scripts/test/${name}`, import.meta.url).href)) as Exports;

const root = fileURLToPath(new URL("../../../", import.meta.url));
const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/** Creates a Vitest project with these files, and runs it with the runner of `npm test`. @returns the runner's results */
async function run(files: Record<string, string>, expected: string[]): Promise<Figures> {
  const { vitest } = await script<Runner>("vitest.mjs");
  const folder = mkdtempSync(join(tmpdir(), "carillon-runner-"));
  folders.push(folder);
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
  it("counts only its own tests if another one runs in the same clone", async () => {
    const figures = (name: string) =>
      run({ [`${name}.test.mjs`]: `${head}test("${name}", () => expect(1).toBe(1));` }, [`${name}.test.mjs`]);
    const both = await Promise.all([figures("one"), figures("other")]);
    expect(both.map(({ passed, failures }) => [passed, failures])).toEqual([
      [1, []],
      [1, []],
    ]);
  });

  it("fails for flaky, broken, skipped and unloadable tests, uncaught errors and files in no project", async () => {
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

  it("names each file that did not run if the run ended early", async () => {
    const { figuresOf } = await script<Counting>("figures.mjs");
    const start = { event: "start", files: ["/a", "/b"].map((file) => ({ project: "unit", file })) };
    const tests = [{ name: "one", state: "passed", why: "" }];
    const lines = [start, { event: "file", project: "unit", file: "/a", ms: 1, tests, errors: [] }];
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    expect(figuresOf(text, { exit: 130, whole: true })).toMatchObject({
      passed: 1,
      failures: [
        { file: "/b", test: "the whole file", why: "did not run", ran: false },
        { file: "", test: "the run itself", why: "ended early, with exit code 130", ran: false },
      ],
    });
    expect(figuresOf("", { exit: 1, whole: true }).failures).toHaveLength(1);
  });
});

describe("npm test -- --gate", { timeout: 120_000 }, () => {
  const failure = (name: string, second?: "passed" | "failed"): Failure => ({
    file: join(root, "a.test.ts"),
    test: name,
    why: "expected 1 to be 2",
    ran: true,
    ...(second && { second }),
  });
  const names = (failures: Failure[]) => failures.map(({ test }) => test);
  const aside: SetAside = { file: "a.test.ts", test: "aside", since: "2026-11-20", reason: "why", tried: "what" };
  const asideName = `${join(root, "a.test.ts")} > aside`;

  it("accepts and names a test that passes on its second try; broken, unloadable and skipped tests fail", async () => {
    const { passed, failures, tests } = await run(
      {
        "unsteady.test.mjs": `${head}test("second time lucky", () => {
          const seen = import.meta.filename + ".seen"; const was = existsSync(seen);
          writeFileSync(seen, ""); expect(was).toBe(true); });`,
        "worse.test.mjs": `${head}test("first time lucky", () => {
          const seen = import.meta.filename + ".seen"; const was = existsSync(seen);
          writeFileSync(seen, ""); expect(was).toBe(false); }); test("broken", () => expect(1).toBe(2)); test.skip("skipped", () => {});`,
        "hook.test.mjs": `${head}import { beforeAll, describe } from "vitest"; describe("of one hook", () => {
          beforeAll(() => { const seen = import.meta.filename + ".seen"; const was = existsSync(seen);
            writeFileSync(seen, ""); expect(was).toBe(true); });
          for (let n = 0; n < 7; n++) test("test " + n, () => {}); });`,
        "unloaded.test.mjs": 'import "./is-not-there.js";',
      },
      [],
    );
    expect(passed).toBe(7);
    const { verdictOf } = await script<Gate>("gate.mjs");
    const { failed, unsteady } = verdictOf(failures, tests, []);
    expect(names(unsteady).sort()).toEqual(["first time lucky", "second time lucky", "the file itself"]);
    expect(names(failed).sort()).toEqual(["broken", "skipped", "the file itself"]);
  });

  it("accepts up to five flaky tests", async () => {
    const { verdictOf } = await script<Gate>("gate.mjs");
    const six = Array.from({ length: 6 }, (_, n) => failure(`${n}`, "passed"));
    expect(verdictOf(six.slice(1), [], [])).toEqual({ failed: [], unsteady: six.slice(1), aside: [] });
    expect(verdictOf(six, [], [])).toEqual({ failed: six, unsteady: [], aside: [] });
    const noLook = failure("no look");
    expect(verdictOf([noLook], [], []).failed).toEqual([noLook]);
  });

  it("reports a test that is set aside without judging it, and fails if there is no such test", async () => {
    const { verdictOf } = await script<Gate>("gate.mjs");
    const failures = [failure("aside", "failed"), failure("other", "failed")];
    const { failed, aside: reported } = verdictOf(failures, [asideName], [aside]);
    expect([names(failed), names(reported)]).toEqual([["other"], ["aside"]]);
    expect(verdictOf([], [asideName], [aside])).toEqual({ failed: [], unsteady: [], aside: [] });
    expect(verdictOf([], [], [aside]).failed).toMatchObject([
      { test: "aside", why: "is set aside, but no such test ran" },
    ]);
  });

  it("has a valid list of tests set aside", async () => {
    const { faultsOfSetAside, readSetAside } = await script<Gate>("gate.mjs");
    expect(faultsOfSetAside(readSetAside(), Date.now())).toEqual([]);
    const nowMs = Date.parse("2026-11-30T12:00:00Z");
    expect(faultsOfSetAside(Array(5).fill(aside), nowMs)).toEqual([]);
    expect(faultsOfSetAside(Array(6).fill(aside), nowMs)).toEqual(["6 tests are set aside: 5 at most"]);
    const faults = faultsOfSetAside(
      [
        { ...aside, since: "2026-11-19" },
        { ...aside, since: "soon" },
        { ...aside, reason: "" },
        { ...aside, tried: "" },
        { since: "2026-11-30", reason: "why", tried: "what" },
      ],
      nowMs,
    );
    expect(faults).toEqual([
      "a.test.ts > aside: set aside for more than 10 days",
      "a.test.ts > aside: since is a date, YYYY-MM-DD",
      "a.test.ts > aside: a reason and what was tried are needed",
      "a.test.ts > aside: a reason and what was tried are needed",
      " > : file and test are needed",
    ]);
  });
});
