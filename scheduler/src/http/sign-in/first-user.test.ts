import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { AccessStore } from "../../access/access-store.ts";
import { isPassword, passwordCheck } from "../../access/password.ts";
import { type FirstUserOptions, makeFirstUser } from "./first-user.ts";

const folder = mkdtempSync(join(tmpdir(), "carillon-first-"));
afterAll(() => rmSync(folder, { recursive: true }));
const inFile = (name: string, text: string, mode = 0o600) => {
  const path = join(folder, name);
  writeFileSync(path, text, { mode });
  return `file:${path}`;
};

async function firstStart(given: string | null, hasTerminal: boolean, users: string[] = []) {
  const [logged, told, made] = [[] as string[], [] as string[], [] as { name: string; hash: string }[]];
  const say = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const store = {
    users: async () => users.map((name) => ({ name })),
    createFirst: async (user: { name: string; hash: string }) => {
      made.push(user);
      return true;
    },
  } as unknown as AccessStore;
  await makeFirstUser({
    store,
    nowMs: 1,
    log: { debug: say, info: say, warn: say, error: say },
    untilAnswered: (ask) => ask(),
    given,
    checkPassword: passwordCheck(null),
    terminal: hasTerminal ? (text) => void told.push(text) : null,
  } as FirstUserOptions);
  return { logged: logged.join("\n"), told: told.join("\n"), made };
}

describe("the start of a cluster without users", () => {
  it("creates admin with a random password, and shows it only on the terminal", async () => {
    const { logged, told, made } = await firstStart(null, true);
    const [, password = ""] = /with the password ([a-z2-9]{6}(?:-[a-z2-9]{6}){3}), and/.exec(told) ?? [];
    expect(made).toMatchObject([{ name: "admin", temporary: true }]);
    expect(await isPassword(password, made[0]?.hash ?? null)).toBe(true);
    expect(logged).toBe("");
  });

  it("creates no user without a terminal, and logs a hint", async () => {
    const { logged, made } = await firstStart(null, false);
    expect(made).toEqual([]);
    expect(logged).toMatch(/nobody can sign in yet.*carillon users create admin --role admin/);
  });

  it.each([
    ["a text", () => "nine herons at the weir"],
    ["a file", () => inFile("password", "nine herons at the weir\n")],
  ])("creates admin with the password given as %s, and shows it nowhere", async (_, given) => {
    const { logged, told, made } = await firstStart(given(), true);
    expect(await isPassword("nine herons at the weir", made[0]?.hash ?? null)).toBe(true);
    expect(`${logged}${told}`).not.toContain("herons");
  });

  it.each([
    ["a weak one", () => "password1234", "PASSWORD_WEAK"],
    ["an empty file", () => inFile("empty", "\n"), "PASSWORD_WEAK"],
    ["a file that others can read", () => inFile("open", "nine herons at the weir", 0o644), "SECRET_KEY_OPEN"],
    ["a file that is not there", () => `file:${join(folder, "none")}`, "FILE_INVALID"],
  ])("refuses %s", async (_, given, code) => {
    await expect(firstStart(given(), false)).rejects.toMatchObject({ code });
  });
});

it("the start of a cluster with users creates none, and does not read the password file", async () => {
  const given = `file:${join(folder, "gone since")}`;
  expect(await firstStart(given, true, ["ann"])).toEqual({ logged: "", told: "", made: [] });
});
