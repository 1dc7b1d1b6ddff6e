import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { BreachedPasswords } from "./breached-passwords.ts";

const folder = mkdtempSync(join(tmpdir(), "breached-"));
afterAll(() => rmSync(folder, { recursive: true }));

const hashOf = (password: string) => createHash("sha1").update(password).digest("hex").toUpperCase();
const fileOf = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

const opened = async (path: string) => {
  const list = new BreachedPasswords(path);
  await list.check();
  return list;
};

describe("breached passwords", () => {
  const breached = Array.from({ length: 200 }, (_, n) => `breached password ${n}`);

  it.each([
    ["hashes alone", (hash: string) => hash, "\n"],
    [
      "counts of all lengths, and lines that end as on Windows",
      (hash: string, n: number) => `${hash}:${10 ** (n % 9)}`,
      "\r\n",
    ],
    ["small letters, and no end of the last line", (hash: string) => hash.toLowerCase(), "\n"],
  ])(
    "are found in a file of %s, including the first and the last, and other passwords are not",
    async (name, line, end) => {
      const hashes = breached.map(hashOf).sort();
      const lines = hashes.map((hash, n) => line(hash, n)).join(end);
      const list = await opened(fileOf(name, name.startsWith("small") ? lines : lines + end));
      for (const password of breached) expect([password, await list.has(password)]).toEqual([password, true]);
      for (let n = 0; n < 100; n++) expect(await list.has(`another password ${n}`)).toBe(false);
    },
  );

  it("are found in a file with one line", async () => {
    const list = await opened(fileOf("one", hashOf("the only one")));
    expect([await list.has("the only one"), await list.has("another")]).toEqual([true, false]);
  });

  it.each([
    ["that is not there", () => join(folder, "none"), /ENOENT/],
    ["that is empty", () => fileOf("empty", ""), /it is empty/],
    ["of passwords", () => fileOf("plain", "123456\npassword\n"), /a line of it is no hash/],
    ["of one endless line", () => fileOf("endless", "A".repeat(10_000)), /a line of it is no hash/],
    [
      "sorted by count",
      () => fileOf("unsorted", breached.map((password) => `${hashOf(password)}:1`).join("\n")),
      /not sorted by hash/,
    ],
  ])("from a file %s are refused at the start", async (_, path, message) => {
    const refused = opened(path());
    await expect(refused).rejects.toMatchObject({ code: "FILE_INVALID", message: expect.stringMatching(message) });
    await expect(refused).rejects.toMatchObject({ hint: expect.stringContaining("sorted by hash") });
  });
});
