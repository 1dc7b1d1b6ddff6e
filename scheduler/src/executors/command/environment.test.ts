import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { accountFor } from "./account.ts";
import { commandEnvironment } from "./environment.ts";

const account = { name: "anna", home: "/home/anna" };
const marks = { task: "t", schedule: "s", run: "7", slot: "2024-01-01T00:00:00Z", fence: "3" };

test("a program gets a fixed set of variables, the task's and the run's, and none of this process", () => {
  process.env.CANARY_SECRET = "postgres://secret";
  try {
    expect(
      commandEnvironment({ LANG: "de_DE", HOME: "/srv", USER: "root", CARILLON_FENCE: "99", X: "" }, account, marks, {
        allowed: ["HOME", "USER", "CARILLON_*", "X"],
      }),
    ).toEqual({
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      SHELL: "/bin/sh",
      LANG: "de_DE",
      HOME: "/srv",
      LOGNAME: "anna",
      USER: "anna",
      X: "",
      CARILLON_TASK: "t",
      CARILLON_SCHEDULE: "s",
      CARILLON_RUN: "7",
      CARILLON_SLOT: "2024-01-01T00:00:00Z",
      CARILLON_FENCE: "3",
    });
  } finally {
    delete process.env.CANARY_SECRET;
  }
});

describe("a task may set only listed variables; an operator can add more", () => {
  const refused = (name: string) =>
    expect.objectContaining({ code: "COMMAND_NOT_ALLOWED", message: expect.stringContaining(name) });
  // Each of these variables makes some program run other code: tar, git, ssh, rsync, less, OpenSSL, .NET, loaders, interpreters, shells.
  test.each(
    `TAR_OPTIONS GIT_EXTERNAL_DIFF GIT_PAGER GIT_SSH_COMMAND SSH_ASKPASS RSYNC_RSH LESSOPEN OPENSSL_CONF
    DOTNET_STARTUP_HOOKS HOME XDG_CONFIG_HOME MAKEFLAGS AWS_CONFIG_FILE LOCPATH TMPDIR USER CARILLON_STORE LD_PRELOAD
    BASH_ENV ENV NODE_OPTIONS PERL5OPT PYTHONPATH RUBYOPT IFS LANGX lang __proto__ constructor`.split(/\s+/),
  )("%s", (name) => {
    const env = Object.fromEntries([[name, "x"]]);
    expect(() => commandEnvironment(env, account, marks)).toThrow(refused(name));
    expect(() => commandEnvironment(env, account, marks, { allowed: [`${name}_*`, `${name}2`] })).toThrow(
      refused(name),
    );
    commandEnvironment(env, account, marks, { allowed: [name] });
    commandEnvironment(env, account, marks, { allowed: [`${name.slice(0, 2)}*`] });
    commandEnvironment(env, account, marks, { free: true });
  });
  test("locale, time zone, a system shell and the account's own home are allowed", () => {
    const env = {
      LANG: "de_DE.UTF-8@euro",
      LC_ALL: "C",
      LANGUAGE: "de:en",
      TZ: "America/Argentina/Buenos_Aires",
      SHELL: "/bin/bash",
      HOME: "/home/anna",
    };
    expect(commandEnvironment(env, account, marks)).toMatchObject(env);
    expect(commandEnvironment({ TZ: "<+01>-1,M3.5.0/2" }, account, marks).TZ).toBe("<+01>-1,M3.5.0/2");
  });
  test.each([
    ["LANG", "../../tmp/evil"],
    ["LC_ALL", "/tmp/evil"],
    ["LC_MESSAGES", "%s"],
    ["TZ", "/tmp/evil"],
    ["TZ", ":/tmp/evil"],
    ["TZ", "Europe/../../../tmp/evil"],
    ["SHELL", "/tmp/sh"],
    ["SHELL", "sh"],
    ["SHELL", "/bin/touch"],
  ])("%s=%s is refused", (name, value) => {
    expect(() => commandEnvironment({ [name]: value }, account, marks)).toThrow(refused(name));
  });
  test.each(["/tmp", "/usr/bin:/tmp/evil", "/usr/bin:", ":/bin", "bin", "/usr/bin/../../tmp"])(
    "PATH=%s is refused",
    (path) => {
      expect(() => commandEnvironment({ PATH: path }, account, marks)).toThrow(
        expect.objectContaining({ code: "COMMAND_NOT_ALLOWED" }),
      );
    },
  );
  test("a PATH of system folders is accepted", () => {
    expect(commandEnvironment({ PATH: "/sbin:/usr/bin" }, account, marks).PATH).toBe("/sbin:/usr/bin");
  });
});

test.each([[{ "A=B": "x" }], [{ "": "x" }], [{ "BASH_FUNC_x%%": "() { id; }" }], [{ A: "x\0y" }]])(
  "%j is refused as an environment",
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
  test("the worker's own account, or none, is accepted", () => {
    expect(accountFor(undefined, anna)).toEqual(account);
    expect(accountFor("anna", anna)).toEqual(account);
    expect(accountFor("root", root)).toEqual({ name: "root", home: "/root" });
  });
  test("another account is refused without root, with a hint", () => {
    expect(() => accountFor("www-data", anna)).toThrow(
      expect.objectContaining({
        code: "COMMAND_NOT_ALLOWED",
        message: 'the command belongs to "www-data"; this worker runs as anna',
      }),
    );
  });
  test("root switches to another account if it exists", () => {
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
