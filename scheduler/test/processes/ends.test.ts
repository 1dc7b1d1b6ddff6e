/** Tests when the process of a script ends by itself, and when it goes on. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { zooKeeperServer } from "../support/grace-lock-stage.ts";
import { postgres, redis } from "../support/servers.ts";
import { openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";

/** In this folder, the import "carillon" resolves to this package. */
const cwd = fileURLToPath(new URL("../..", import.meta.url));
let stage: Stage;
const children: ChildProcess[] = [];
beforeEach(async () => {
  stage = await openStage(postgres());
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await stage.close();
});

/** Starts a script in which `tower` is an instance; by default it uses this test's schema. */
function script(text: string, options: object = { store: postgres().url, schema: stage.schema }) {
  const whole = `import { carillon, every } from "carillon"; const tower = carillon(${JSON.stringify(options)});\n${text}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", whole], {
    cwd,
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  const ended = once(child, "exit").then(([code, signal]) => ({ code, signal, lines }));
  return { child, lines, ended };
}

it("a script that enqueues ends by itself without stop(), and all its runs are stored", async () => {
  const { ended } = script(`tower.task("mail", {}, () => undefined);
for (let n = 0; n < 20; n++) await tower.enqueue("mail", n, { in: "1h" });
await new Promise((resolve) => setImmediate(resolve));
console.log("kept alive by:", ...process.getActiveResourcesInfo().filter((what) => /TCP|Timeout/.test(what)));`);
  expect(await ended).toEqual({ code: 0, signal: null, lines: ["kept alive by:"] });
  expect(await stage.one("select count(*)::int as runs from $s.run")).toEqual({ runs: 20 });
});

it("a script with an embedded store stops its server when it ends", async () => {
  const folder = mkdtempSync(join(tmpdir(), "carillon-ends-"));
  chmodSync(folder, 0o755);
  try {
    const directory = join(folder, "store");
    const { ended } = script(
      `tower.task("mail", {}, () => undefined);
await tower.enqueue("mail", 1, { in: "1h" });`,
      { store: "embedded", directory },
    );
    expect(await ended).toMatchObject({ code: 0, signal: null });
    expect(existsSync(join(directory, "data/PG_VERSION"))).toBe(true);
    expect(existsSync(join(directory, "data/postmaster.pid"))).toBe(false);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("a node keeps its process alive, and executes runs long after its script's last line", async () => {
  const { child, lines, ended } = script(`tower.task("tick", { schedule: every("1s") }, () => console.log("tick"));
await tower.start();`);
  await until("three slots to have run", () => lines.length >= 3);
  child.kill("SIGTERM");
  expect(await ended).toMatchObject({ code: null, signal: "SIGTERM" });
});

describe.each<[string, () => string | undefined]>([
  ["PostgreSQL", () => undefined],
  ["ZooKeeper", () => `zookeeper://${zooKeeperServer()}/${stage.schema}`],
  ["Redis", () => `${redis().url}?prefix=${stage.schema}`],
])("with locks on %s", (_, coordinationOf) => {
  const options = () => {
    const coordination = coordinationOf();
    return { store: postgres().url, schema: stage.schema, ...(coordination === undefined ? {} : { coordination }) };
  };

  it("a script ends by itself without stop() once it has released its last lock", async () => {
    const { ended } = script(
      `const held = await tower.lock("books").acquire();
console.log("has it");
await held.release();
const slot = await tower.semaphore("gpu", { permits: 1 }).tryAcquire();
await slot.release();
const nightly = await tower.lock("books", { fair: true }).acquire({ wait: "60s" });
await nightly.release();`,
      options(),
    );
    expect(await ended).toEqual({ code: 0, signal: null, lines: ["has it"] });
    expect(await stage.rows("select id from $s.lock_session")).toEqual([]);
  });
});

it("a process that holds a lock stays alive long after its script's last line", async () => {
  const { child, lines, ended } = script(
    `await tower.lock("books").acquire();
console.log("has it");`,
    { store: postgres().url, schema: stage.schema, sessionTimeout: "1500ms" },
  );
  await until("it has it", () => lines.length > 0);
  // Waits for more than eight heartbeats, half a second apart: longer than the time after which unused connections are closed.
  const beat = async () => (await stage.one<{ beat: number }>("select beat::int from $s.lock_session")).beat;
  await until("it has beaten", async () => (await beat()) > 8);
  child.kill("SIGTERM");
  expect(await ended).toMatchObject({ code: null, signal: "SIGTERM" });
});

it("a process that waits for a lock ends after it has held the lock, and not before", async () => {
  const owner = carillon({
    store: postgres().url,
    schema: stage.schema,
    handleSignals: false,
    log: recordingLog().log,
  });
  const held = await owner.lock("books").acquire();
  const { lines, ended } = script(`console.log("asks");
const held = await tower.lock("books").acquire();
console.log("has it");
await held.release();`);
  await until("it to ask", () => lines.includes("asks"));
  await held.release();
  expect(await ended).toEqual({ code: 0, signal: null, lines: ["asks", "has it"] });
  await owner.stop();
});
