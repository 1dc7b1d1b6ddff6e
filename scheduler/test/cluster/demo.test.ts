import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openEmbedded } from "../../src/embedded/index.ts";
import { wholeLines } from "../support/whole-lines.ts";

const program = fileURLToPath(new URL("../../../examples/dist/demo/main.js", import.meta.url));

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "carillon-test-"));
  // If the test runs as root, the demo's PostgreSQL server runs as another user, who needs access to the folder.
  chmodSync(folder, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Starts the built demo with the test's folder as its temporary and working folder. */
function demo(...args: string[]) {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...process.env, TMPDIR: folder, TZ: "Europe/Berlin" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const out: string[] = [];
  const shown: string[] = [];
  const waiting: { part: string; resolve: () => void }[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => out.push(line));
  createInterface({ input: child.stderr }).on("line", (line) => {
    shown.push(line);
    for (const { part, resolve } of waiting) if (line.includes(part)) resolve();
  });
  const ended = once(child, "close").then(([code]) => {
    for (const { resolve } of waiting) resolve();
    return code as number | null;
  });
  return {
    child,
    ended,
    /** Resolves when the demo has printed a line that contains `part`, or has ended. */
    line: (part: string) => new Promise<void>((resolve) => waiting.push({ part, resolve })),
    figures: () => JSON.parse(out.at(-1) ?? "null") as Record<string, number | string | null>,
    text: () => [...shown, ...out].join("\n"),
  };
}

/** Returns the processes whose command line names the folder: nodes of the demo, and its PostgreSQL server. */
function left(): string[] {
  const found: string[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      if (words.includes(folder)) found.push(`${pid}: ${words}`);
    } catch {
      // The process has ended since `/proc` was listed.
    }
  }
  return found;
}

test("two processes, one killed half-way: every due run is accounted for, and no process or schema is left behind", async () => {
  const run = demo("--seconds", "8", "--json");
  const code = await run.ended;
  const figures = run.figures();
  expect(code, run.text()).toBe(0);

  expect(figures).toMatchObject({ seconds: 8, nodes: 2, killed: 1, node_version: process.version });
  expect(figures).toMatchObject({ lost: 0, doubled: 0, pending: 0, early: 0, differences: 0 });
  // Eight seconds have at least 8 slots of the heartbeat and one of the charge; an imported crontab adds slots only if a minute begins.
  expect(figures.slots_due).toBeGreaterThanOrEqual(9);
  expect(Number(figures.fired) + Number(figures.skipped) + Number(figures.missed)).toBe(figures.slots_due);
  expect(figures.fired).toBe(figures.slots_due);
  expect(figures).toMatchObject({ delayed_due: 1_000, delayed_fired: 1_000, by_hand_due: 32, by_hand_fired: 32 });
  expect(Number(figures.p50_ms)).toBeLessThanOrEqual(Number(figures.p99_ms));
  expect(Number(figures.p99_ms)).toBeLessThanOrEqual(Number(figures.max_ms));
  // Each charge fails twice. Only one retry is certain, because the killed process may have made a charge's first attempt.
  expect(Number(figures.retried)).toBeGreaterThanOrEqual(1);

  expect(Number(figures.rerun_after_kill)).toBeGreaterThan(0);
  expect(Number(figures.rerun_after_kill)).toBeLessThanOrEqual(Number(figures.claimed_by_killed));
  expect(Number(figures.rerun_last_ms_after_kill)).toBeGreaterThan(0);

  expect(run.text()).toMatch(/kill -9 (bourdon|treble)/);
  expect(run.text()).toMatch(/(bourdon|treble) leads, term 2/);
  expect(run.text()).toMatch(/settle-shanghai/);
  expect(readdirSync(folder)).toEqual([]);
  expect(left()).toEqual([]);
});

test("Ctrl-C ends the demo: every due run is accounted for, and no process or schema is left behind", async () => {
  const run = demo("--json");
  // Waits until a counted slot has come due. Slots of a crontab may come before the counted time.
  await run.line("from here on");
  await run.line("reminder   ");
  run.child.kill("SIGINT");
  expect(await run.ended, run.text()).toBe(0);
  const figures = run.figures();
  expect(figures).toMatchObject({ lost: 0, doubled: 0, differences: 0, killed: 0 });
  expect(Number(figures.delayed_due)).toBeGreaterThan(0);
  expect(figures.delayed_fired).toBe(figures.delayed_due);
  expect(readdirSync(folder)).toEqual([]);
  expect(left()).toEqual([]);
});

test("killed with SIGKILL, the demo leaves no process behind", async () => {
  const run = demo("--json");
  await run.line("from here on");
  expect(left()).not.toEqual([]);
  run.child.kill("SIGKILL");
  await run.ended;
  await expect.poll(left, { timeout: 60_000 }).toEqual([]);
});

test("the demo fails and reports it if a run is lost and another one is started twice", async () => {
  const directory = join(folder, "store");
  const run = demo("--seconds", "4", "--json", "--directory", directory);
  await run.line("reminder   ");
  const [own] = readdirSync(folder).filter((name) => name.startsWith("carillon-demo-"));
  const record = join(folder, own as string, "seen");
  const start = await vi.waitUntil(
    () => wholeLines(record).find((line) => line.includes('"start","task":"reminder"')),
    {
      timeout: 60_000,
    },
  );
  appendFileSync(record, `${start}\n`);
  const embedded = await openEmbedded({ directory });
  const database = new pg.Client(embedded.url);
  try {
    await database.connect();
    const { rowCount } = await database.query(
      "delete from carillon.run where id = (select id from carillon.run where source = 2 order by due_ms desc limit 1)",
    );
    expect(rowCount).toBe(1);
  } finally {
    await database.end();
    await embedded.release();
  }
  expect(await run.ended, run.text()).toBe(1);
  expect(run.figures(), run.text()).toMatchObject({ lost: 1, doubled: 1, delayed_due: 1_000, delayed_fired: 999 });
  // On a difference the demo keeps the store's folder for inspection, but stops the server.
  expect(readdirSync(folder)).toEqual(["store"]);
  expect(left()).toEqual([]);
});

test("an invalid argument is an error that lists the valid ones", async () => {
  const run = demo("--seconds", "soon");
  expect(await run.ended).toBe(1);
  expect(run.text()).toContain("--seconds is a whole number from 4 to 99999");
});
