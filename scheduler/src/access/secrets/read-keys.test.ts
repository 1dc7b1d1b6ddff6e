import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { isOpenToOthers } from "./private-file.ts";
import { readSecretKeys } from "./read-keys.ts";
import { makeSecretKey } from "./secret-keys.ts";

const folder = mkdtempSync(join(tmpdir(), "carillon-keys-"));
const path = join(folder, "secret-keys");
writeFileSync(path, `# first\n${makeSecretKey()}\n`);
afterAll(() => rmSync(folder, { recursive: true }));

it.each([0o600, 0o400, 0o440, 0o640])("a key file with mode %o is read", (mode) => {
  chmodSync(path, mode);
  expect(readSecretKeys(`file:${path}`).present).toMatch(/./);
});

it.each([0o644, 0o444, 0o604, 0o602, 0o601, 0o660, 0o666])(
  "a key file with mode %o is refused, with a hint",
  (mode) => {
    chmodSync(path, mode);
    expect(() => readSecretKeys(`file:${path}`)).toThrow(
      expect.objectContaining({
        code: "SECRET_KEY_OPEN",
        message: expect.stringContaining(`mode 0${mode.toString(8)}`),
        hint: expect.stringContaining(`chmod 600 ${path}`),
      }),
    );
  },
);

it("a group may read the key file if it is root's or one of the process's groups, but may not write it", () => {
  expect(isOpenToOthers({ mode: 0o100440, gid: 1_000 }, [20, 1_000])).toBe(false);
  expect(isOpenToOthers({ mode: 0o100440, gid: 0 }, [1_000])).toBe(false);
  expect(isOpenToOthers({ mode: 0o100440, gid: 54_321 }, [20, 1_000])).toBe(true);
  expect(isOpenToOthers({ mode: 0o100600, gid: 54_321 }, [20, 1_000])).toBe(false);
  expect(isOpenToOthers({ mode: 0o100620, gid: 1_000 }, [1_000])).toBe(true);
});

it("a missing key file is another error", () => {
  expect(() => readSecretKeys("file:/nowhere/keys")).toThrow(expect.objectContaining({ code: "FILE_INVALID" }));
});
