import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { CommandSpec } from "../../task/task.ts";
import { type CommandFailure, type CommandOptions, runCommand } from "./command.ts";

let folder = "";
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "carillon-command-")));
  chmodSync(folder, 0o755);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes an executable program for a test: a shell script, unless its first line names another interpreter. */
function program(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text, { mode: 0o755 });
  return file;
}

const marks = { task: "nightly", schedule: "", run: "42", slot: "2024-01-01T00:00:00.000Z", fence: "7" };

function begin(spec: CommandSpec, options: Partial<CommandOptions> = {}) {
  const lines: [string, string][] = [];
  const seen: { text: string; resolve: () => void }[] = [];
  const abort = new AbortController();
  const ended = runCommand(spec, {
    allow: [spec.argv[0] as string],
    run: marks,
    signal: abort.signal,
    log(stream, line) {
      lines.push([stream, line]);
      for (const { text, resolve } of seen) if (line.includes(text)) resolve();
    },
    ...options,
  });
  /** Resolves when a line with this text has been logged. */
  const logged = (text: string) =>
    new Promise<void>((resolve) => {
      if (lines.some(([, line]) => line.includes(text))) resolve();
      else seen.push({ text, resolve });
    });
  return { ended, lines, abort, logged };
}

async function run(spec: CommandSpec, options: Partial<CommandOptions> = {}) {
  const { ended, lines } = begin(spec, options);
  const result = await ended;
  return { result, lines, stdout: lines.filter(([stream]) => stream === "stdout").map(([, line]) => line) };
}

async function failureOf(spec: CommandSpec, options: Partial<CommandOptions> = {}) {
  const { ended, lines } = begin(spec, options);
  const error = await ended.then(
    () => expect.fail("it did not fail"),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof CarillonError)) throw error;
  return { error, lines };
}

const alive = (pid: number) => {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // If no process reaps orphans (as in some containers), a dead process remains as a zombie, which counts as dead.
  return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
};
async function gone(pid: number) {
  await expect.poll(() => alive(pid)).toBe(false);
}

describe("a program", () => {
  test("delivers output by line and stream, and succeeds when it exits with 0", async () => {
    const file = program("both", "#!/bin/sh\necho one\necho two >&2\nprintf 'three'\n");
    const { result, lines } = await run({ argv: [file] });
    expect(result).toMatchObject({ exitCode: 0, rehearsed: false, cutBytes: 0 });
    expect(lines.filter(([stream]) => stream === "stdout")).toEqual([
      ["stdout", "one"],
      ["stdout", "three"],
    ]);
    expect(lines).toContainEqual(["stderr", "two"]);
  });

  test("gets the configured environment, and none of the worker's", async () => {
    process.env.CANARY_SECRET = "do not leak";
    try {
      const { stdout } = await run({ argv: ["env"], env: { GREETING: "a b" } }, { allowEnv: ["GREETING"] });
      const names = stdout.map((line) => line.slice(0, line.indexOf("="))).sort();
      expect(names).toEqual(
        "CARILLON_COMMAND CARILLON_FENCE CARILLON_RUN CARILLON_SCHEDULE CARILLON_SLOT CARILLON_TASK GREETING HOME LANG LOGNAME PATH SHELL USER".split(
          " ",
        ),
      );
      expect(stdout).toContain("GREETING=a b");
      expect(stdout).toContain("CARILLON_FENCE=7");
    } finally {
      delete process.env.CANARY_SECRET;
    }
  });

  test("gets its standard input, or an empty one", async () => {
    expect((await run({ argv: ["cat"], stdin: "Joe,\n\nwhere are you?\n" })).stdout).toEqual([
      "Joe,",
      "",
      "where are you?",
    ]);
    expect((await run({ argv: ["cat"] })).stdout).toEqual([]);
  });

  test("may leave its input unread", async () => {
    expect((await run({ argv: ["true"], stdin: "x".repeat(5_000_000) })).result.exitCode).toBe(0);
  });

  test("runs in its folder, or in the root folder", async () => {
    expect((await run({ argv: ["pwd"], cwd: folder })).stdout).toEqual([folder]);
    expect((await run({ argv: ["pwd"] })).stdout).toEqual(["/"]);
  });

  test("runs in its account's home for an imported crontab, or in the root folder if there is no home", async () => {
    const at = async (home: string) => {
      const own = { name: "anna", uid: 1000, home };
      return (await run({ argv: ["pwd"], cwd: "~", user: "anna" }, { own })).stdout;
    };
    expect(await at(folder)).toEqual([folder]);
    expect(await at("/nonexistent")).toEqual(["/"]);
  });

  test("runs as its account if root can switch to it", async () => {
    const file = program("whoami", '#!/bin/sh\nid -un; id -G; echo "$USER"\n');
    const { ended, lines } = begin({ argv: [file], user: "daemon" });
    if (process.getuid?.() === 0) {
      await ended;
      expect(lines.map(([, line]) => line)).toEqual(["daemon", expect.stringMatching(/^\d+$/), "daemon"]);
    } else {
      await expect(ended).rejects.toMatchObject({ code: "COMMAND_NOT_ALLOWED" });
      expect(lines).toEqual([]);
    }
  });

  test("does not run as another account", async () => {
    const canary = join(folder, "canary-account");
    const { error } = await failureOf(
      { argv: ["touch", canary], user: "daemon" },
      { own: { name: "anna", uid: 1000, home: "/" } },
    );
    expect(error).toMatchObject({ code: "COMMAND_NOT_ALLOWED" });
    expect(existsSync(canary)).toBe(false);
  });
});

describe("no shell reads an argument", () => {
  const canary = () => join(folder, "canary");
  const hostile = () =>
    [
      "; touch CANARY",
      "| touch CANARY",
      "|| touch CANARY",
      "& touch CANARY &",
      "&& touch CANARY",
      "$(touch CANARY)",
      "`touch CANARY`",
      "${IFS}touch${IFS}CANARY",
      "\n touch CANARY\n",
      "\r\ntouch CANARY",
      "> CANARY",
      ">> CANARY",
      "2> CANARY",
      "< /dev/null > CANARY",
      "'; touch CANARY; '",
      '"; touch CANARY; "',
      "\\'; touch CANARY; #",
      "<(touch CANARY)",
      "{touch,CANARY}",
      "a'b\"c\\d*e?f[g]~h!i#j%k^l",
      "*",
      "~",
      "$HOME",
      "--; touch CANARY",
      "\u2028touch CANARY",
      "() { :; }; touch CANARY",
      "%0a touch CANARY",
      "\x1b]0;touch CANARY\x07",
      "",
      " ",
      "é 🔔",
    ].map((text) => text.replaceAll("CANARY", canary()));

  test("each arrives unchanged, alone, together, as input and as environment; the canary never appears", async () => {
    const show = program(
      "show",
      `#!${process.execPath}\nconsole.log(JSON.stringify([process.argv.slice(2), process.env.H ?? ""]));\n`,
    );
    const words = hostile();
    expect(JSON.parse((await run({ argv: [show, ...words] })).stdout.join("\n"))).toEqual([words, ""]);
    for (const word of words.slice(0, 12)) {
      const { stdout } = await run({ argv: [show, word], env: { H: word }, stdin: word }, { allowEnv: ["H"] });
      expect(JSON.parse(stdout.join("\n"))).toEqual([[word], word]);
    }
    expect(existsSync(canary())).toBe(false);
    expect(readdirSync("/").includes("canary")).toBe(false);
  });

  test("nor does a shell read the program's name", async () => {
    for (const word of hostile()) {
      for (const allow of [["true"], ["true", "/usr/bin/true"]]) {
        const { error } = await failureOf({ argv: [`/usr/bin/true${word === "" ? " " : word}`] }, { allow });
        expect(error.code).toBe("COMMAND_NOT_ALLOWED");
      }
    }
    expect(existsSync(canary())).toBe(false);
  });

  test("the canary appears if a shell is allowed", async () => {
    const argv = ["/bin/sh", "-c", `touch ${canary()}-sings`];
    expect((await failureOf({ argv })).error).toMatchObject({
      code: "COMMAND_NOT_ALLOWED",
      message: expect.stringContaining("is a shell"),
    });
    expect((await failureOf({ argv }, { allow: ["true"], shell: true })).error.code).toBe("COMMAND_NOT_ALLOWED");
    expect(existsSync(`${canary()}-sings`)).toBe(false);
    await run({ argv }, { shell: true });
    expect(existsSync(`${canary()}-sings`)).toBe(true);
  });

  test("a text file without #! would run in the shell, and is refused like a shell", async () => {
    const file = program("bare", `touch ${canary()}-bare\n`);
    expect((await failureOf({ argv: [file] })).error.code).toBe("COMMAND_NOT_ALLOWED");
    expect(existsSync(`${canary()}-bare`)).toBe(false);
  });
});

describe("refused before a program starts", () => {
  test.each([
    ["nothing allowed", { argv: ["touch"] }, []],
    ["another allowed", { argv: ["touch"] }, ["echo"]],
    ["a relative path to an allowed name", { argv: ["./touch"] }, ["touch"]],
    ["no program", { argv: [] }, ["touch"]],
    ["code by environment", { argv: ["touch"], env: { LD_PRELOAD: "/tmp/x.so" } }, ["touch"]],
    ["a program's own options", { argv: ["touch"], env: { TAR_OPTIONS: "--to-command=id" } }, ["touch"]],
  ] as [string, CommandSpec, string[]][])("%s", async (_, spec, allow) => {
    const canary = join(folder, "canary-refused");
    const { error } = await failureOf(
      { ...spec, argv: [...spec.argv, ...(spec.argv.length > 0 ? [canary] : [])] },
      { allow },
    );
    expect(error).toMatchObject({ code: "COMMAND_NOT_ALLOWED" });
    expect(existsSync(canary)).toBe(false);
  });

  test("a run that is already cancelled", async () => {
    const canary = join(folder, "canary-cancelled");
    const { error } = await failureOf({ argv: ["touch", canary] }, { signal: AbortSignal.abort() });
    expect(error.code).toBe("CANCELLED");
    expect(existsSync(canary)).toBe(false);
  });
});

describe("a rehearsal", () => {
  test("shows the command line that would run, quoted for a shell, and runs nothing", async () => {
    const canary = join(folder, "it's a canary");
    const { result, lines } = await run({ argv: ["/usr/bin/touch", canary] }, { rehearse: true });
    expect(result).toMatchObject({ exitCode: 0, rehearsed: true });
    expect(lines).toEqual([["note", `rehearsal, would run: /usr/bin/touch '${folder}/it'\\''s a canary'`]]);
    expect(existsSync(canary)).toBe(false);
  });
  test("reports a program that is not installed, or that belongs to another account", async () => {
    const { lines } = await run(
      { argv: ["/usr/lib/sysstat/no-such-sa1", "600"], user: "daemon" },
      { rehearse: true, own: { name: "anna", uid: 1000, home: "/" } },
    );
    expect(lines.map(([, line]) => line)).toEqual([
      expect.stringContaining('belongs to "daemon"; this worker runs as anna'),
      "rehearsal, would run: /usr/lib/sysstat/no-such-sa1 600",
      "/usr/lib/sysstat/no-such-sa1 is not installed here",
    ]);
  });
  test("of a forbidden program is refused", async () => {
    expect((await failureOf({ argv: ["touch"] }, { allow: [], rehearse: true })).error.code).toBe(
      "COMMAND_NOT_ALLOWED",
    );
  });
});

describe("a failing program", () => {
  test("is reported with its exit code and its last lines", async () => {
    const file = program(
      "fails",
      "#!/bin/sh\ni=0; while [ $i -lt 30 ]; do echo line $i >&2; i=$((i+1)); done; exit 3\n",
    );
    const { error } = await failureOf({ argv: [file] });
    const stderr = Array.from({ length: 10 }, (_, n) => `line ${n + 20}`);
    expect(error).toMatchObject({
      code: "COMMAND_FAILED",
      message: `${file} ended with exit code 3: ${stderr.join("\n")}`,
    });
    expect(error.cause).toEqual({ exitCode: 3, signal: null, stderr } satisfies CommandFailure);
    const long = program(
      "long",
      "#!/bin/sh\nfor n in 1 2 3 4 5 6 7 8 9; do printf '%0900d\\n' $n >&2; done\necho why >&2\nexit 3\n",
    );
    const { message } = (await failureOf({ argv: [long] })).error;
    expect(message, "what is kept of it ends with the last").toMatch(/^.* ended with exit code 3: 0+8\n0+9\nwhy$/s);
    expect(message.length).toBeLessThanOrEqual(limits.errorMessageLength);
  });
  test("is reported with its signal", async () => {
    const { error } = await failureOf({ argv: [program("dies", "#!/bin/sh\nkill -KILL $$\n")] });
    expect(error).toMatchObject({ code: "COMMAND_FAILED", message: expect.stringContaining("SIGKILL") });
    expect(error.cause).toEqual({ exitCode: null, signal: "SIGKILL", stderr: [] });
  });
  test("is judged by the task's exit codes; a code that the task does not retry is final", async () => {
    const ends = (code: number) => ({ argv: [program(`ends-${code}`, `#!/bin/sh\nexit ${code}\n`)] });
    expect((await run({ ...ends(3), okExitCodes: [0, 3] })).result.exitCode).toBe(3);
    expect((await failureOf({ ...ends(0), okExitCodes: [3] })).error.code).toBe("COMMAND_FAILED");
    const asked = async (spec: CommandSpec) => (await failureOf(spec)).error.retryAfterMs;
    expect(await asked(ends(4))).toBeUndefined();
    expect(await asked({ ...ends(4), retryExitCodes: [4, 75] })).toBeUndefined();
    expect(await asked({ ...ends(4), retryExitCodes: [75] })).toBe(Number.POSITIVE_INFINITY);
    const killed = program("killed", "#!/bin/sh\nkill -KILL $$\n");
    expect(await asked({ argv: [killed], retryExitCodes: [] }), "a signal comes from outside").toBeUndefined();
  });
  test.each([
    ["is not there", () => ({ argv: [join(folder, "missing")] })],
    ["has no interpreter", () => ({ argv: [program("lost", "#!/no/such/interpreter\n")] })],
    ["has no folder", () => ({ argv: ["true"], cwd: join(folder, "missing") })],
    ["has too many arguments", () => ({ argv: ["true", ...Array.from({ length: 40 }, () => "x".repeat(100_000))] })],
    ["has a NUL in an argument", () => ({ argv: ["true", "a\0b"] })],
  ])("cannot be started: it %s", async (_, spec) => {
    const { error } = await failureOf(spec());
    expect(error).toMatchObject({ code: "COMMAND_FAILED", message: expect.stringContaining("could not be started") });
    expect(error.message).not.toMatch(/\bE[A-Z0-9]{3,}$/);
    expect(error.hint).not.toBe("");
  });
});

describe("too much output", () => {
  test("is cut with a note, and does not stop the program", async () => {
    const { result, lines } = await run({ argv: ["seq", "1", "200000"] }, { outputBytesMax: 1000 });
    const stdout = lines.filter(([stream]) => stream === "stdout").map(([, line]) => line);
    expect(stdout).toEqual(Array.from({ length: stdout.length }, (_, n) => String(n + 1)));
    expect(stdout.join("\n").length).toBeLessThan(1000);
    const size = Array.from({ length: 200_000 }, (_, n) => `${n + 1}\n`).join("").length;
    expect(result.cutBytes).toBe(size - `${stdout.join("\n")}\n`.length);
    expect(lines.slice(stdout.length)).toEqual([
      ["note", "output cut here: it is more than 1000 bytes"],
      ["note", `${result.cutBytes} bytes of output were not logged`],
    ]);
  });
});

describe("an abort ends all processes that the command started", () => {
  test("a program that obeys SIGTERM, and its children", async () => {
    const file = program("family", "#!/bin/sh\nsleep 300 &\necho child $!\nwait\n");
    const { ended, lines, abort, logged } = begin({ argv: [file] }, { graceMs: 600_000 });
    await logged("child");
    const child = Number(lines[0]?.[1].split(" ")[1]);
    expect(alive(child)).toBe(true);
    abort.abort(new CarillonError("TIMEOUT", "it took longer than 1 s"));
    await expect(ended).rejects.toMatchObject({ code: "TIMEOUT", message: "it took longer than 1 s" });
    await gone(child);
  });

  test("a program that ignores SIGTERM is killed after the grace, and so are its children", async () => {
    const file = program(
      "deaf",
      "#!/bin/sh\ntrap '' TERM\nsh -c 'trap \"\" TERM; echo child $$; while :; do sleep 0.05; done' &\nwait\nwhile :; do sleep 0.05; done\n",
    );
    const { ended, lines, abort, logged } = begin({ argv: [file] }, { graceMs: 100 });
    await logged("child");
    abort.abort();
    await expect(ended).rejects.toMatchObject({ code: "CANCELLED" });
    await gone(Number(lines[0]?.[1].split(" ")[1]));
  });

  test("a child that has closed its output is also ended, even after the program itself has exited", async () => {
    const file = program(
      "daemonish",
      "#!/bin/sh\nsh -c 'trap \"\" TERM; while :; do sleep 0.05; done' >/dev/null 2>&1 &\necho child $!\nsleep 300\n",
    );
    const { ended, lines, abort, logged } = begin({ argv: [file] }, { graceMs: 100 });
    await logged("child");
    abort.abort();
    await expect(ended).rejects.toMatchObject({ code: "CANCELLED" });
    await gone(Number(lines[0]?.[1].split(" ")[1]));
  });

  test.each(["", 'trap "" TERM;'])(
    "a child that left the process group is also ended, also if it ignores SIGTERM: %j",
    async (deaf) => {
      const file = program(
        "escapes",
        `#!/bin/sh\nsetsid sh -c '${deaf} echo child $$; while :; do sleep 0.05; done' &\nwait\n`,
      );
      const { ended, lines, abort, logged } = begin({ argv: [file] }, { graceMs: 100 });
      await logged("child");
      abort.abort();
      await expect(ended).rejects.toMatchObject({ code: "CANCELLED" });
      await gone(Number(lines[0]?.[1].split(" ")[1]));
    },
  );

  test("a child that left the group, cleared its environment and holds the output does not block the run", async () => {
    const file = program("hides", "#!/bin/sh\nsetsid env -i sh -c 'echo child $$; sleep 300' &\nwait\n");
    const { ended, lines, abort, logged } = begin({ argv: [file] }, { graceMs: 100 });
    await logged("child");
    const child = Number(lines[0]?.[1].split(" ")[1]);
    abort.abort();
    await expect(ended).rejects.toMatchObject({ code: "CANCELLED" });
    process.kill(-child, "SIGKILL");
    await gone(child);
  });

  test("an exit with 0 after the abort still counts as aborted", async () => {
    const file = program("polite", "#!/bin/sh\ntrap 'exit 0' TERM\necho ready\nwhile :; do sleep 0.05; done\n");
    const { ended, abort, logged } = begin({ argv: [file] });
    await logged("ready");
    abort.abort();
    await expect(ended).rejects.toMatchObject({ code: "CANCELLED" });
  });

  test("an abort after the end changes nothing", async () => {
    const { ended, abort } = begin({ argv: ["true"] });
    const result = await ended;
    abort.abort();
    expect(result.exitCode).toBe(0);
  });
});

test("the output of a background process belongs to the run", async () => {
  const gate = join(folder, "gate");
  const file = program("later", `#!/bin/sh\n(while [ ! -e ${gate} ]; do sleep 0.02; done; echo late) &\necho early\n`);
  const { ended, lines, logged } = begin({ argv: [file] });
  await logged("early");
  writeFileSync(gate, "");
  await ended;
  expect(lines.map(([, line]) => line)).toEqual(["early", "late"]);
});
