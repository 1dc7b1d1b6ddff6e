import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { accountFor } from "./account.ts";
import { commandEnvironment } from "./environment.ts";

const account = { name: "anna", home: "/home/anna" };
const marks = { task: "t", run: "7", slot: "2024-01-01T00:00:00Z", fence: "3" };

test("a fixed set, the task's own, the run's marks; nothing of this process", () => {
  process.env.CANARY_SECRET = "postgres://secret";
  try {
    expect(
      commandEnvironment({ LANG: "de_DE", HOME: "/srv", USER: "root", CARILLON_FENCE: "99", X: "" }, account, marks),
    ).toEqual({
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      SHELL: "/bin/sh",
      LANG: "de_DE",
      HOME: "/srv",
      LOGNAME: "anna",
      USER: "anna",
      X: "",
      CARILLON_TASK: "t",
      CARILLON_RUN: "7",
      CARILLON_SLOT: "2024-01-01T00:00:00Z",
      CARILLON_FENCE: "3",
    });
  } finally {
    delete process.env.CANARY_SECRET;
  }
});

describe("variables that bring other code into an allowed program", () => {
  test.each(
    "LD_PRELOAD LD_LIBRARY_PATH BASH_ENV ENV NODE_OPTIONS PERL5OPT PYTHONPATH RUBYOPT GIT_SSH_COMMAND IFS".split(" "),
  )("%s", (name) => {
    const refused = expect.objectContaining({ code: "COMMAND_NOT_ALLOWED", message: expect.stringContaining(name) });
    expect(() => commandEnvironment({ [name]: "x" }, account, marks)).toThrow(refused);
    expect(commandEnvironment({ [name]: "x" }, account, marks, { allowed: [name] })).toMatchObject({ [name]: "x" });
    expect(commandEnvironment({ [name]: "x" }, account, marks, { free: true })).toMatchObject({ [name]: "x" });
  });
  test.each(["/tmp", "/usr/bin:/tmp/evil", "/usr/bin:", ":/bin", "bin", "/usr/bin/../../tmp"])("PATH=%s", (path) => {
    expect(() => commandEnvironment({ PATH: path }, account, marks)).toThrow(
      expect.objectContaining({ code: "COMMAND_NOT_ALLOWED" }),
    );
  });
  test("a PATH of system folders is fine", () => {
    expect(commandEnvironment({ PATH: "/sbin:/usr/bin" }, account, marks).PATH).toBe("/sbin:/usr/bin");
  });
});

test.each([[{ "A=B": "x" }], [{ "": "x" }], [{ "BASH_FUNC_x%%": "() { id; }" }], [{ A: "x\0y" }]])(
  "%j is no environment",
  (env) => {
    expect(() => commandEnvironment(env as unknown as Record<string, string>, account, marks)).toThrow(
      expect.objectContaining({ code: "TASK_INVALID" }),
    );
  },
);

describe("accounts", () => {
  const folder = mkdtempSync(join(tmpdir(), "carillon-accounts-"));
  const accounts = join(folder, "passwd");
  afterAll(() => rmSync(folder, { recursive: true }));
  const anna = { name: "anna", uid: 1000, home: "/home/anna" };
  const root = { name: "root", uid: 0, home: "/root" };
  test("its own, or none given", () => {
    expect(accountFor(undefined, anna)).toEqual(account);
    expect(accountFor("anna", anna)).toEqual(account);
    expect(accountFor("root", root)).toEqual({ name: "root", home: "/root" });
  });
  test("another's, without being root, is refused with what to do", () => {
    expect(() => accountFor("www-data", anna)).toThrow(
      expect.objectContaining({
        code: "COMMAND_NOT_ALLOWED",
        message: 'the command belongs to "www-data"; this worker runs as anna',
      }),
    );
  });
  test("root changes to it, if it exists", () => {
    writeFileSync(
      accounts,
      "root:x:0:0::/root:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\nodd:x::100::/:/bin/sh\nbad line\n",
    );
    expect(accountFor("bob", root, accounts)).toEqual({
      name: "bob",
      home: "/home/bob",
      switchTo: { uid: 1001, gid: 100 },
    });
    for (const name of ["alice", "", "bob:x", "odd", "bad line"]) {
      expect(() => accountFor(name, root, accounts)).toThrow(expect.objectContaining({ code: "COMMAND_NOT_ALLOWED" }));
    }
  });
});
