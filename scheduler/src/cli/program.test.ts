import { afterEach, expect, it, vi } from "vitest";
import { inProcess } from "../../test/support/in-process.ts";
import { main } from "./program.ts";

afterEach(() => vi.restoreAllMocks());

const words = ["dev", "server", "worker", "doctor", "import crontab"];
words.push(...["list", "show", "next", "run", "pause", "resume", "edit", "revert"].map((one) => `tasks ${one}`));
words.push(...["list", "drain", "resume"].map((one) => `nodes ${one}`));
words.push(...["list", "show", "tail", "cancel", "decide"].map((one) => `runs ${one}`));

it.each(words)("carillon %s --help shows an example and exits with 0", async (word) => {
  let shown = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    shown += text;
    return true;
  });
  expect(await main([...word.split(" "), "--help"])).toBe(0);
  expect(shown).toContain(`Example:\n  $ carillon ${word}`);
  expect(shown).toContain("--store <URL>");
});

it("without a command, it shows the first steps instead of all commands, and reports wrong usage", async () => {
  const { code, stdout, stderr } = await inProcess([]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  for (const step of ["carillon dev", "carillon server", "carillon --help", "README.md"])
    expect(stderr).toContain(step);
  expect(stderr).not.toContain("Commands:");
  expect((await inProcess(["--help"])).stdout).toContain("Commands:");
});
