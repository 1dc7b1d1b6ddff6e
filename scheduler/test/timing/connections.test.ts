import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "@carillon/zookeeper/testing";
import pg from "pg";
import { expect, it } from "vitest";
import { Programs, readSeen } from "../support/programs.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";
import { hold } from "../support/timing.ts";

const password = "nine egrets by the lock";
const [slow, fast] = [9_000, 1_000];
const lookMs = 15_000;

const p99 = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.ceil(0.99 * numbers.length) - 1] ?? Number.NaN;

it("10,000 foreign connections to a node delay neither its slots nor its owner's sign-in", async () => {
  const schema = `connections_${randomBytes(4).toString("hex")}`;
  const folder = mkdtempSync(join(tmpdir(), "carillon-connections-"));
  const log = join(folder, "seen.log");
  const port = await freePort();
  const programs = new Programs();
  let flood: ReturnType<typeof spawn> | undefined;
  try {
    const options = { listen: `127.0.0.1:${port}`, adminPassword: password };
    await programs.start({ store: postgres().url, schema, name: "node", tasks: 20, log, handlerMs: 1, options });
    const signIn = async () => {
      const beganMs = performance.now();
      const response = await fetch(`http://127.0.0.1:${port}/v1/sign-in`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: "admin", password }),
      });
      expect(response.status).toBe(200);
      return performance.now() - beganMs;
    };
    const late = (fromMs: number, toMs: number) =>
      readSeen(log).flatMap(({ kind, slot, at }) =>
        kind === "start" && slot >= fromMs && slot < toMs ? [at - slot] : [],
      );
    const looked = async () => {
      const fromMs = Date.now();
      await sleep(lookMs);
      return late(fromMs, fromMs + lookMs - 1_000);
    };
    const before = await looked();
    const signInBeforeMs = await signIn();

    const program = fileURLToPath(new URL("../support/programs/flood.mjs", import.meta.url));
    flood = spawn(process.execPath, [program, "127.0.0.1", String(port), String(slow), String(fast)]);
    let told = { open: 0, answers: 0 };
    flood.stdout?.on("data", (text) => {
      told = JSON.parse(String(text).trim().split("\n").at(-1) ?? "");
    });
    await until("the connections are open", () => told.open > 0.9 * (slow + fast));
    const answersBefore = told.answers;
    const during = await looked();
    const signInMs = await signIn();
    process.stdout.write(`  ${told.open} connections open, ${told.answers - answersBefore} answers\n`);
    expect(Math.min(before.length, during.length)).toBeGreaterThan(200);
    expect(told.answers - answersBefore).toBeGreaterThan(fast);
    hold("p99 of lateness beside 10,000 connections", {
      ms: p99(during),
      controlMs: p99(before),
      mostMs: 50,
    });
    hold("the owner's sign-in beside them", { ms: signInMs, controlMs: signInBeforeMs, mostMs: 2_000 });
  } finally {
    flood?.kill("SIGKILL");
    await programs.endAll();
    rmSync(folder, { recursive: true });
    const database = new pg.Client({ connectionString: postgres().url });
    await database.connect();
    await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
  }
});
