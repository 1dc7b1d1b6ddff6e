import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, describe, expect, test } from "vitest";
import { postgres } from "../support/servers.ts";

const program = fileURLToPath(new URL("../support/programs/signalled.mjs", import.meta.url));

/** Empty for one that has ended, be it reaped or not. */
const commandLineOf = (pid: number) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");

describe("a process with two instances, told to stop while a handler runs", () => {
  const schema = `signals_${process.pid}`;
  const children: ChildProcess[] = [];

  afterAll(async () => {
    for (const child of children) child.kill("SIGKILL");
    const database = new pg.Client({ connectionString: postgres().url });
    await database.connect();
    await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
  });

  /** The first signal comes once its handler has begun. */
  async function stopped(signals: NodeJS.Signals[], config: object) {
    const child = spawn(process.execPath, [program], {
      env: { ...process.env, CARILLON_TEST_PROGRAM: JSON.stringify({ store: postgres().url, schema, ...config }) },
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    const said: string[] = [];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said.push(...text.split("\n").filter((word) => word !== ""));
      if (said.length !== 1) return;
      child.kill(signals[0]);
      // The first has been heard by then.
      if (signals[1]) setTimeout(() => child.kill(signals[1]), 500);
    });
    const [code, signal] = await once(child, "close");
    return { said, code, signal };
  }

  test("one signal stops both, and ends the process when the last has stopped", async () => {
    const { said, code, signal } = await stopped(["SIGTERM"], { handlerMs: 2_000 });
    expect({ said, code, signal }).toEqual({ said: ["begun", "done"], code: null, signal: "SIGTERM" });
  });

  test("what the program does by the signal itself is waited for: it ends the process", async () => {
    const { said, code, signal } = await stopped(["SIGTERM"], { handlerMs: 1_000, cleanup: true });
    expect({ said, code, signal }).toEqual({ said: ["begun", "done", "cleaned"], code: 0, signal: null });
  });

  test("a second signal ends the process at once", async () => {
    const { said, code, signal } = await stopped(["SIGTERM", "SIGINT"], { handlerMs: 20_000 });
    expect({ said, code, signal }).toEqual({ said: ["begun"], code: null, signal: "SIGINT" });
  });

  test("and tells the commands of its tasks to end", async () => {
    const place = await mkdtemp(join(tmpdir(), "carillon-signals-"));
    try {
      await chmod(place, 0o755);
      const pidFile = join(place, "pid");
      const program = join(place, "program");
      await writeFile(program, `#!/bin/bash\necho $$ > ${pidFile}.new\nmv ${pidFile}.new ${pidFile}\nexec sleep 60\n`);
      await chmod(program, 0o755);
      const { signal } = await stopped(["SIGTERM", "SIGINT"], { command: [program], pidFile });
      expect(signal).toBe("SIGINT");
      const pid = Number(await readFile(pidFile, "utf8"));
      await expect.poll(() => commandLineOf(pid), { timeout: 10_000 }).not.toContain("sleep");
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  });
});
