import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, describe, expect, test } from "vitest";
import { StoreProxy } from "../support/proxy.ts";
import { postgres } from "../support/servers.ts";

const program = fileURLToPath(new URL("../support/programs/signalled.mjs", import.meta.url));

/** Resolves with the command line; empty if the process has ended, whether or not its parent has waited for it. */
const commandLineOf = (pid: number) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");

describe("a process with two instances that gets a signal while a handler runs", () => {
  const schema = `signals_${process.pid}`;
  const children: ChildProcess[] = [];

  afterAll(async () => {
    for (const child of children) child.kill("SIGKILL");
    const database = new pg.Client({ connectionString: postgres().url });
    await database.connect();
    await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
  });

  /**
   * Starts a process and sends it the signals: the first one when its handler has started, the second one when the stop has begun.
   * @returns what the process printed, and how it ended
   */
  async function stopped(signals: NodeJS.Signals[], config: object, before = (): void => undefined) {
    const child = spawn(process.execPath, [program], {
      env: { ...process.env, CARILLON_TEST_PROGRAM: JSON.stringify({ store: postgres().url, schema, ...config }) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.push(child);
    const said: string[] = [];
    let logged = "";
    createInterface({ input: child.stdout }).on("line", (word) => {
      said.push(word);
      if (said.length !== 1) return;
      before();
      child.kill(signals[0]);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      const before = logged;
      logged += text;
      // The process logs this line when the first signal arrives.
      const heard = "stopping: waiting for what runs";
      if (signals[1] && logged.includes(heard) && !before.includes(heard)) child.kill(signals[1]);
    });
    const [code, signal] = await once(child, "close");
    process.stderr.write(logged);
    return { said, code, signal };
  }

  test("stops both after one signal, and ends when the last has stopped", async () => {
    const { said, code, signal } = await stopped(["SIGTERM"], { handlerMs: 2_000 });
    expect({ said, code, signal }).toEqual({ said: ["begun", "done"], code: null, signal: "SIGTERM" });
  });

  test("waits for the program's own signal handler, which ends the process", async () => {
    const { said, code, signal } = await stopped(["SIGTERM"], { handlerMs: 1_000, cleanup: true });
    expect({ said, code, signal }).toEqual({ said: ["begun", "done", "cleaned"], code: 0, signal: null });
  });

  test.each(["refused", "silent"])(
    "ends after one signal with the store %s, beside a handler that ignores its abort",
    async (how) => {
      const proxy = await StoreProxy.before(postgres().url);
      try {
        const fault = () => (how === "refused" ? proxy.cut({ refuse: true }) : proxy.hang());
        const config = { store: proxy.url, drain: "500ms", handlerMs: 600_000 };
        const { said, signal } = await stopped(["SIGTERM"], config, fault);
        // The handler would run longer than the test's time limit, so the process did not wait for the handler.
        expect({ said, signal }).toEqual({ said: ["begun"], signal: "SIGTERM" });
      } finally {
        await proxy.close();
      }
    },
  );

  test("ends at once after a second signal", async () => {
    const { said, code, signal } = await stopped(["SIGTERM", "SIGINT"], { handlerMs: 600_000 });
    expect({ said, code, signal }).toEqual({ said: ["begun"], code: null, signal: "SIGINT" });
  });

  test.each([
    ["and tells the commands of its tasks to end", "exec sleep 600", ["SIGTERM", "SIGINT"], {}],
    [
      "one signal is enough for a command that heeds none, once its time is over",
      "trap '' TERM\nwhile true; do sleep 0.1; done",
      ["SIGTERM"],
      { drain: "200ms" },
    ],
  ] as const)("%s", async (_, body, signals, options) => {
    const place = await mkdtemp(join(tmpdir(), "carillon-signals-"));
    try {
      await chmod(place, 0o755);
      const pidFile = join(place, "pid");
      const program = join(place, "program");
      await writeFile(program, `#!/bin/bash\necho $$ > ${pidFile}.new\nmv ${pidFile}.new ${pidFile}\n${body}\n`);
      await chmod(program, 0o755);
      const { signal } = await stopped([...signals], { command: [program], pidFile, ...options });
      expect(signal).toBe(signals.at(-1));
      const pid = Number(await readFile(pidFile, "utf8"));
      await expect.poll(() => commandLineOf(pid), { timeout: 60_000 }).not.toMatch(/sleep|carillon-signals/);
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  });
});
