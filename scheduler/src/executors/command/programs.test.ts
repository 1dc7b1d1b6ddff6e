import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findProgram, recentProgram } from "./programs.ts";

let folder = "";
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "carillon-programs-")));
  mkdirSync(join(folder, "bin"));
  mkdirSync(join(folder, "other"));
  const script = (path: string, text: string) => {
    writeFileSync(join(folder, path), text);
    chmodSync(join(folder, path), 0o755);
  };
  script("bin/tool", "#!/usr/bin/true\n");
  script("other/tool", "#!/usr/bin/true\n");
  script("bin/text", "id\n");
  writeFileSync(join(folder, "bin/data"), "#!/usr/bin/true\n");
  symlinkSync("/bin/sh", join(folder, "bin/innocent"));
  symlinkSync(join(folder, "bin/tool"), join(folder, "other/link-to-tool"));
  symlinkSync(join(folder, "bin"), join(folder, "linked-bin"));
  symlinkSync(join(folder, "other/tool"), join(folder, "bin/outward"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const refused = (code = "COMMAND_NOT_ALLOWED") => expect.objectContaining({ code });
const path = () => [join(folder, "bin")];

describe("allowed programs", () => {
  test("none is allowed unless it is listed", () => {
    expect(() => findProgram("/usr/bin/true", [])).toThrow(refused());
    expect(() => findProgram("true", ["/usr/bin/false", "tru", "true2"])).toThrow(refused());
  });
  test("a path or a name matches a listed path or name if both mean the same file", () => {
    const tool = join(folder, "bin/tool");
    for (const name of ["tool", tool]) {
      for (const allow of ["tool", tool]) {
        expect(findProgram(name, ["/usr/bin/false", allow], path())).toEqual({
          file: tool,
          present: true,
          shell: false,
        });
      }
    }
  });
  test("a linked folder counts as its target, and the real path is started", () => {
    const real = join(folder, "bin/tool");
    expect(findProgram(join(folder, "linked-bin/tool"), [real]).file).toBe(real);
    expect(findProgram(real, [join(folder, "linked-bin/tool")]).file).toBe(real);
  });
});

describe("programs that only look allowed", () => {
  test.each([
    "./tool",
    "../bin/tool",
    "bin/tool",
    "",
    ".",
    "..",
    "/",
    "//usr/bin/true",
    "/usr/bin/../bin/true",
    "/usr/bin/./true",
    "/usr/bin/true/",
  ])("%j", (name) => {
    expect(() => findProgram(name, ["tool", "true", "/usr/bin/true", join(folder, "bin/tool")], path())).toThrow(
      refused(),
    );
  });
  test("the same file name in another folder", () => {
    expect(() => findProgram(join(folder, "other/tool"), ["tool"], path())).toThrow(refused());
    expect(() => findProgram("/tmp/echo", ["echo", "/usr/bin/echo"])).toThrow(refused());
    expect(() => findProgram(relative(process.cwd(), join(folder, "bin/tool")), ["tool"], path())).toThrow(refused());
  });
  test("a link to an allowed program, because programs can act by the name they are called by", () => {
    expect(() => findProgram(join(folder, "other/link-to-tool"), ["tool"], path())).toThrow(refused());
  });
  test("a file with a listed name that is not the file in the search path", () => {
    expect(() => findProgram(join(folder, "other/tool"), [join(folder, "bin/tool"), "tool"], path())).toThrow(
      refused(),
    );
    // Conversely, a bare name must not match an allowed file outside the search path.
    expect(() => findProgram("tool", [join(folder, "other/tool")], path())).toThrow(refused());
  });
  test("an invalid list entry is reported as the operator's mistake", () => {
    for (const entry of ["", "./tool", "bin/tool", "/usr/../bin/true"]) {
      expect(() => findProgram("true", ["true", entry])).toThrow(refused("OPTION_INVALID"));
    }
  });
});

test("shells are recognised by name, through links, and as text files without #!", () => {
  expect(findProgram("/bin/sh", ["/bin/sh"]).shell).toBe(true);
  expect(findProgram("bash", ["bash"]).shell).toBe(true);
  expect(findProgram("innocent", ["innocent"], path()).shell).toBe(true);
  expect(findProgram("text", ["text"], path()).shell).toBe(true);
  expect(findProgram("outward", ["outward"], path())).toEqual({
    file: join(folder, "bin/outward"),
    present: true,
    shell: false,
  });
  expect(findProgram("/opt/none/bash", ["/opt/none/bash"])).toEqual({
    file: "/opt/none/bash",
    present: false,
    shell: true,
  });
});

test("an allowed program that does not exist is reported as absent", () => {
  expect(findProgram("no-such-tool", ["no-such-tool"])).toEqual({ file: "no-such-tool", present: false, shell: false });
  expect(findProgram(join(folder, "bin/data"), [join(folder, "bin/data")]).present).toBe(false);
  expect(findProgram(folder, [folder]).present).toBe(false);
});

describe("a program that was found", () => {
  test("is looked for again after a second, and at once for another list", () => {
    const file = join(folder, "bin/passing");
    writeFileSync(file, "#!/usr/bin/true\n", { mode: 0o755 });
    const allow = [file];
    const [here, gone] = [true, false].map((present) => ({ file, present, shell: false }));
    expect(recentProgram(file, allow, 0)).toEqual(here);
    rmSync(file);
    expect(recentProgram(file, allow, 999)).toEqual(here);
    expect(recentProgram(file, [file], 999)).toEqual(gone);
    expect(recentProgram(file, allow, 1_000)).toEqual(gone);
    writeFileSync(file, "#!/usr/bin/true\n", { mode: 0o755 });
    expect(recentProgram(file, allow, 1_001), "a missing one is looked for each time").toEqual(here);
  });
  test("does not stand for one that the list does not name", () => {
    const allow = ["/usr/bin/true"];
    recentProgram("/usr/bin/true", allow, 0);
    expect(() => recentProgram("/usr/bin/false", allow, 0)).toThrow(refused());
  });
});
