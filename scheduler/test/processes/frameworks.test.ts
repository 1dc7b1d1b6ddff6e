/** Runs the servers and functions of the guide exactly as they are printed there. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApiStage } from "../support/api-stage.ts";
import { root } from "../support/packed.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

const page = readFileSync(join(root, "docs/guide/frameworks.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "carillon-frameworks-"));
const database = `frameworks_${randomBytes(4).toString("hex")}`;
const url = new URL(postgres().url);
url.pathname = `/${database}`;
const children: ChildProcess[] = [];
const admin = new pg.Client({ connectionString: postgres().url });
const reader = new pg.Client({ connectionString: url.href });

/**
 * The mails that the handlers have sent to the test's mail server. The server answers a mail only when the test calls `answer`.
 */
const letters: { order: string; answer: () => void }[] = [];
const mail = createServer(async (letter, response) => {
  let order = "";
  for await (const part of letter.setEncoding("utf8")) order += part;
  letters.push({ order, answer: () => response.end() });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

beforeAll(async () => {
  await admin.connect();
  await admin.query(`create database ${database}`);
  await reader.connect();
  for (const [, mark = "", text = ""] of page.matchAll(/^```ts (\S+)\n(.*?)^```$/gms))
    writeFileSync(join(folder, mark), text);
  writeFileSync(join(folder, "package.json"), '{ "name": "app", "type": "module" }');
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const compilerOptions = {
    target: "es2023",
    module: "nodenext",
    skipLibCheck: true,
    rewriteRelativeImportExtensions: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    types: ["node"],
    rootDir: ".",
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { stdout, status } = spawnSync(process.execPath, [tsc, "--project", folder], { encoding: "utf8" });
  expect([stdout, status]).toEqual(["", 0]);
  mail.listen(0, "127.0.0.1");
  await once(mail, "listening");
});

afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  mail.closeAllConnections();
  mail.close();
  await reader.end();
  await admin.query(`drop database ${database} with (force)`);
  await admin.end();
  rmSync(folder, { recursive: true });
});

function start(args: string[], port = 0, more: Record<string, string> = {}) {
  const { port: mailPort } = mail.address() as AddressInfo;
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: url.href,
      MAIL_URL: `http://127.0.0.1:${mailPort}`,
      PORT: String(port),
      ...more,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  const output = { out: "", all: "" };
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output.out += text;
    output.all += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    output.all += text;
  });
  return { child, output, ended: once(child, "close") };
}

/** Posts an order on a new connection. @returns the response, or the error's code if there is no response */
async function posted(port: number, body: object) {
  const headers = { "content-type": "application/json" };
  const sent = request({ port, path: "/orders", method: "POST", headers, agent: false }).end(JSON.stringify(body));
  try {
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    let text = "";
    for await (const part of answer.setEncoding("utf8")) text += part;
    return { status: answer.statusCode, text };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

describe.each([
  ["express.js", "express"],
  ["fastify.js", "fastify"],
  ["hono.js", "@hono/node-server"],
  ["main.js", "@nestjs/platform-express"],
])("%s, on %s", (program) => {
  it("enqueues in a request, and on SIGTERM stops after its running handler", async () => {
    const port = await freePort();
    const { child, output, ended } = start([program], port);
    const order = `${program} 17`;
    const post = () => posted(port, { order });
    const answer = await until(`${program} to answer`, async () => {
      if (child.exitCode !== null) throw new Error(`it ended: ${output.all}`);
      const got = await post();
      return typeof got === "object" && got;
    });
    expect(answer.status, output.all).toBe(202);
    const { runId } = JSON.parse(answer.text) as { runId: number };
    const letter = await until("the handler to send its mail", () => letters.find((one) => one.order === order));
    child.kill("SIGTERM");
    // NestJS closes its HTTP server at the end of a stop; the other frameworks do so at the beginning.
    const isStopping =
      program === "main.js"
        ? async () =>
            (await reader.query("select from carillon.session where draining and ended_ms is null")).rowCount === 1
        : async () => (await post()) === "ECONNREFUSED";
    await until(`${program} to begin to stop`, isStopping);
    letter.answer();
    const [code, signal] = await ended;
    expect({ code, signal }, output.all).toEqual(
      program === "main.js" ? { code: null, signal: "SIGTERM" } : { code: 0, signal: null },
    );
    const { rows } = await reader.query("select outcome, attempt, result from carillon.run_history where id = $1", [
      runId,
    ]);
    expect(rows).toEqual([{ outcome: 0, attempt: 1, result: { order } }]);
  });
});

it("a function enqueues a server's task, also after its connections died, and its process can end", async () => {
  const code = `
    import pg from "pg";
    import { handler } from "./lambda.js";
    const first = await handler({ order: "L-1" });
    const database = new pg.Client({ connectionString: process.env.DATABASE_URL });
    await database.connect();
    const { rowCount } = await database.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'carillon' and datname = current_database()",
    );
    await database.end();
    const second = await handler({ order: "L-2" });
    const again = await handler({ order: "L-1" });
    console.log(JSON.stringify({ first: first.runId, second: second.runId, again: again.runId, died: rowCount > 0 }));`;
  const { output, ended } = start(["--input-type=module", "--eval", code]);
  const [status] = await ended;
  expect(status, output.all).toBe(0);
  const { rows } = await reader.query("select id::int, payload from carillon.run order by id");
  expect(rows.map(({ payload }) => payload)).toEqual([{ order: "L-1" }, { order: "L-2" }]);
  const [first, second] = rows.map(({ id }) => id);
  expect(JSON.parse(output.out)).toEqual({ first, second, again: first, died: true });
});

it("a Cloudflare worker enqueues over the HTTP API, only once for a repeated request", async () => {
  const stage = await new ApiStage().open();
  try {
    await stage.task("receipt");
    const code = `
      import worker from "./cloudflare.js";
      const ordered = () => new Request("https://shop.example/", { method: "POST", body: JSON.stringify({ order: "C-1" }) });
      const answers = [await worker.fetch(ordered(), process.env), await worker.fetch(ordered(), process.env)];
      for (const answer of answers) console.log(answer.status, await answer.text());`;
    const env = { CARILLON_URL: stage.urlOf(stage.server), CARILLON_TOKEN: stage.tokens.operator };
    const { output, ended } = start(["--input-type=module", "--eval", code], 0, env);
    const [status] = await ended;
    expect(status, output.all).toBe(0);
    const runs = await stage.rows<{ id: number; payload: unknown }>("select id::int, payload from $s.run");
    expect(runs.map(({ payload }) => payload)).toEqual([{ order: "C-1" }]);
    expect(output.out).toBe(`202 {"run":${runs[0]?.id}}\n`.repeat(2));
  } finally {
    await stage.close();
  }
});
