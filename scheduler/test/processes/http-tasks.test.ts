/** Tests HTTP tasks with a real worker and the receiver in examples/, and command tasks that take too long. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type RequestOptions, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunMarks, runHeaders } from "../../src/executors/http/signature.ts";
import { type Carillon, type CarillonOptions, carillon } from "../../src/index.ts";
import type { RunRecord } from "../../src/run/run-record.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

const example = fileURLToPath(new URL("../../../examples/dist/http-receiver/receiver.js", import.meta.url));
const secret = randomBytes(16).toString("hex");
const schema = `http_${randomBytes(4).toString("hex")}`;
const receivers: ChildProcess[] = [];
const towers: Carillon[] = [];

async function receiver(): Promise<string> {
  const child = spawn(process.execPath, [example], {
    env: { ...process.env, CARILLON_HTTP_SECRET: secret },
    stdio: ["ignore", "pipe", "inherit"],
  });
  receivers.push(child);
  for await (const line of createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }))
    return `http://127.0.0.1:${line.replace("listening on ", "")}/`;
  throw new Error("the receiver ended");
}

async function worker(group: string, define: (tower: Carillon) => void, options: CarillonOptions): Promise<Carillon> {
  const tower = carillon({
    store: postgres().url,
    schema,
    groups: [group],
    handleSignals: false,
    drain: "1s",
    ...options,
  });
  towers.push(tower);
  define(tower);
  return tower.start();
}

async function ended(tower: Carillon, runId: number): Promise<RunRecord> {
  const { store } = await tower.open();
  await until(`run ${runId} to end`, async () => (await store.runs.find(runId)).endedMs !== null, 60_000);
  return store.runs.find(runId);
}

afterAll(async () => {
  for (const child of receivers) child.kill();
  await Promise.all(towers.map((tower) => tower.stop()));
  const client = new pg.Client({ connectionString: postgres().url });
  await client.connect();
  await client.query(`drop schema if exists ${schema} cascade`);
  await client.end();
});

describe("an HTTP task", () => {
  let url: string;
  beforeAll(async () => {
    url = await receiver();
  });

  it("reaches a receiver that checks its signature", async () => {
    const define = (tower: Carillon) => tower.task("signed", { group: "signed", http: { url } });
    const tower = await worker("signed", define, { httpTasks: { allow: ["127.0.0.1"], secret } });
    const { runId } = await tower.run("signed", { ledger: "eu" });
    expect(await ended(tower, runId)).toMatchObject({
      state: "succeeded",
      result: { status: 200, body: { settled: "eu", run: runId } },
    });
    const { store } = await tower.open();
    const logged = async () => (await store.runs.logs(runId, 10)).map(({ message }) => message);
    await until("the log", async () => (await logged()).some((line) => line.startsWith(`POST ${url}: 200 after`)));
    expect(JSON.stringify((await store.tasks.byName("signed")).definition), "secrets stay in the worker").not.toContain(
      secret,
    );
  });

  const body = JSON.stringify({ ledger: "fenced" });
  const signedRequest = (marks: Partial<RunMarks>) => {
    const message = { method: "POST", url: new URL(url), body: Buffer.from(body) };
    const keys = { key: { secret, keyId: "cluster" }, legacySecret: secret };
    const [now, run] = [
      Math.floor(Date.now() / 1_000),
      { task: "t", schedule: "", run: "7", slot: "", attempt: "1", fence: "1" },
    ];
    return { headers: runHeaders(message, { ...run, ...marks }, keys, now) as Record<string, string> };
  };

  it("has a signature that is invalid for any other method, host, path, query, body, header or time", async () => {
    const slot = "2026-01-01T00:00:00.000Z";
    const { headers } = signedRequest({ slot, schedule: "tenant-7" });
    const port = Number(new URL(url).port);
    const call = (more: RequestOptions = {}, sent = body) =>
      new Promise<number | undefined>((resolve, reject) => {
        const asked = { host: "127.0.0.1", port, method: "POST", path: "/", agent: false, headers, ...more };
        request(asked, (answer) => resolve(answer.resume().statusCode))
          .on("error", reject)
          .end(sent);
      });
    const without = (name: string) => Object.fromEntries(Object.entries(headers).filter(([one]) => one !== name));
    const forged: [string, Promise<number | undefined>][] = [
      ["method", call({ method: "PUT" })],
      ["path", call({ path: "/admin" })],
      ["query", call({ path: "/?all=1" })],
      ["host", call({ headers: { ...headers, host: "other.example.com" } })],
      ["body", call({}, "{}")],
      ["former signature alone", call({ headers: without("signature") })],
      ["an unsigned header", call({ headers: { ...signedRequest({}).headers, "carillon-slot": slot } })],
      ...[
        "carillon-task",
        "carillon-schedule",
        "carillon-run",
        "carillon-slot",
        "carillon-attempt",
        "carillon-fence",
      ].flatMap((name): [string, Promise<number | undefined>][] => [
        [name, call({ headers: { ...headers, [name]: "9" } })],
        [`no ${name}`, call({ headers: without(name) })],
      ]),
      [
        "time",
        call({ headers: { ...headers, "signature-input": `${headers["signature-input"]}`.replace(/=\d+;/, "=1;") } }),
      ],
    ];
    for (const [what, status] of forged) expect([what, await status]).toEqual([what, 401]);
    expect(await call()).toBe(200);
  });

  it("is refused only as an older attempt of the same run, not because of another run's higher fence", async () => {
    const call = async (run: number, attempt: number, fence: number) => {
      const { headers } = signedRequest({ run: String(run), attempt: String(attempt), fence: String(fence) });
      return (await fetch(url, { method: "POST", headers, body })).status;
    };
    expect(await call(2, 1, 20), "claimed after the other, and started before it").toBe(200);
    expect(await call(1, 1, 10)).toBe(200);
    expect(await call(1, 2, 30)).toBe(200);
    expect(await call(1, 1, 10), "a paused worker's late call").toBe(409);
  });

  it("with a wrong signature fails without a retry, and so does one to a forbidden address", async () => {
    const define = (tower: Carillon) => {
      tower.task("forged", { group: "forged", retry: 5, http: { url } });
      tower.task("inside", { group: "forged", retry: 5, http: { url: "http://169.254.169.254/latest" } });
    };
    const tower = await worker("forged", define, { httpTasks: { allow: ["127.0.0.1"], secret: "another" } });
    const runs = [await tower.run("forged", {}), await tower.run("inside", {})];
    const codes: unknown[] = [];
    for (const { runId } of runs) {
      const { state, attempt, error } = await ended(tower, runId);
      codes.push([state, attempt, (error as { code: string }).code]);
    }
    expect(codes).toEqual([
      ["failed", 1, "HTTP_REFUSED"],
      ["failed", 1, "HTTP_NOT_ALLOWED"],
    ]);
  });

  it("that gets Retry-After is retried after that time, and not before", async () => {
    const calls: { atMs: number; run: string; fence: number; attempt: string }[] = [];
    const server = createServer((request, response) => {
      const of = (name: string) => String(request.headers[`carillon-${name}`]);
      calls.push({ atMs: performance.now(), run: of("run"), fence: Number(of("fence")), attempt: of("attempt") });
      if (calls.length === 1) response.writeHead(429, { "retry-after": "1" });
      else if (calls.length === 2) response.writeHead(503);
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const http = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
      const retry = { attempts: 5, delay: "10ms" as const, jitter: 0 };
      const define = (tower: Carillon) => tower.task("later", { group: "later", retry, http });
      const tower = await worker("later", define, { httpTasks: { allow: ["127.0.0.1"] } });
      const { runId } = await tower.run("later", {});
      expect(await ended(tower, runId)).toMatchObject({ state: "succeeded", attempt: 3 });
      expect(calls.map(({ run, attempt }) => [Number(run), attempt])).toEqual([
        [runId, "1"],
        [runId, "2"],
        [runId, "3"],
      ]);
      const [first, second, third] = calls as [(typeof calls)[0], (typeof calls)[0], (typeof calls)[0]];
      expect(second.atMs - first.atMs).toBeGreaterThan(950);
      expect(second.fence).toBeGreaterThan(first.fence);
      expect(third.fence).toBeGreaterThan(second.fence);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  it("that is cancelled aborts its request", async () => {
    let broken = false;
    let asked = false;
    const server = createServer((_, response) => {
      asked = true;
      response.on("close", () => {
        broken = true;
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const http = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
      const define = (tower: Carillon) => tower.task("endless", { group: "endless", retry: 3, http });
      const tower = await worker("endless", define, { httpTasks: { allow: ["127.0.0.1"] } });
      const { runId } = await tower.run("endless", {});
      await until("the request", () => asked, 60_000);
      await tower.cancel(runId);
      expect((await ended(tower, runId)).state).toBe("cancelled");
      await until("it to break off", () => broken);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
});

describe("a command task", () => {
  it("that times out is ended with all its child processes, and its output is in the run's log", async () => {
    const folder = mkdtempSync(join(tmpdir(), "carillon-slow-"));
    const [file, pidFile] = [join(folder, "slow"), join(folder, "pid")];
    writeFileSync(file, `#!/bin/sh\nsleep 600 &\necho $! > ${pidFile}\necho begun\nwait\n`, { mode: 0o755 });
    try {
      const define = (tower: Carillon) =>
        tower.task("slow", { group: "slow", timeout: "5s", command: { argv: [file] } });
      const tower = await worker("slow", define, { commands: { allow: [file] } });
      const { runId } = await tower.run("slow");
      const run = await ended(tower, runId);
      expect(run).toMatchObject({ state: "failed", error: { code: "TIMEOUT" } });
      const { store } = await tower.open();
      await until("its log", async () => (await store.runs.logs(runId, 10)).some(({ message }) => message === "begun"));
      const child = Number(readFileSync(pidFile, "utf8"));
      // The command line of a process that has ended is empty or cannot be read, whether or not its parent has waited for it.
      const commandLine = () => readFile(`/proc/${child}/cmdline`, "utf8").catch(() => "");
      await until("what it started to be gone", async () => (await commandLine()) === "");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("fails at once if its exit code is not retryable", async () => {
    const folder = mkdtempSync(join(tmpdir(), "carillon-final-"));
    const file = join(folder, "ends");
    writeFileSync(file, "#!/bin/sh\nexit 4\n", { mode: 0o755 });
    try {
      const command = { argv: [file], retryExitCodes: [75] };
      const define = (tower: Carillon) => tower.task("final", { group: "final", retry: 5, command });
      const tower = await worker("final", define, { commands: { allow: [file] } });
      const { runId } = await tower.run("final");
      expect(await ended(tower, runId)).toMatchObject({
        state: "failed",
        attempt: 1,
        error: { code: "COMMAND_FAILED" },
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
