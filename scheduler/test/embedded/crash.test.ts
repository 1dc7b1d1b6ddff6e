import { spawn } from "node:child_process";
import { chown, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { openEmbedded } from "../../src/embedded/index.ts";
import { serverProcesses } from "../../src/embedded/processes.ts";
import { finallyDo, isStopped, kill, killServer, postmasterOf, query, scratch, startUser, until } from "./stage.ts";

test("processes that see the server killed restart one server at the same URL, with all committed data", async () => {
  const directory = await scratch();
  const lines: string[] = [];
  const store = await openEmbedded({ directory, log: (line) => lines.push(line) });
  await query(store.url, "create table kept (n int)");
  const users = [startUser({ directory }), startUser({ directory })];
  for (const user of users) expect(await user.next("open")).toMatchObject({ started: "attached", url: store.url });
  await query(store.url, "insert into kept select generate_series(1, 1000)");

  const before = await postmasterOf(directory);
  kill(before, "SIGKILL");
  for (const user of users) user.tell("revive");
  await Promise.all([store.revive(), ...users.map((user) => user.next("revived"))]);
  const after = await postmasterOf(directory);
  expect(after).not.toBe(before);
  expect(await query(store.url, "select count(*)::int as n from kept")).toEqual([{ n: 1000 }]);

  // The new server counts all three users again: the first two releases do not stop it, the third does.
  for (const user of users) user.tell("release");
  await Promise.all(users.map((user) => user.next("released")));
  expect(await postmasterOf(directory)).toBe(after);
  await store.release();
  expect(await isStopped(directory)).toBe(true);
});

test("a dying server whose children still answer is not taken for a live one", async () => {
  const directory = await scratch();
  const store = await openEmbedded({ directory });
  const client = new pg.Client(store.url);
  client.on("error", () => undefined);
  await client.connect();
  finallyDo(() => client.end().catch(() => undefined /* its server has been killed */));
  const before = await postmasterOf(directory);
  // Suspends the server process before the kill, as a busy machine may delay it: its child processes still answer queries
  // meanwhile.
  kill(before, "SIGSTOP");
  const revived = store.revive();
  for (let n = 0; n < 20; n++) expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  kill(before, "SIGKILL");
  await revived;
  expect(await postmasterOf(directory)).not.toBe(before);
  expect(await query(store.url, "select 1 as one")).toEqual([{ one: 1 }]);
  await store.release();
  expect(await isStopped(directory)).toBe(true);
});

test("the store restarts its server by itself, even after the death of a child made it restart", async () => {
  const directory = await scratch();
  const lines: string[] = [];
  const store = await openEmbedded({ directory, log: (line) => lines.push(line) });
  const back = () => lines.filter((line) => line.includes("is back")).length;
  kill(await postmasterOf(directory), "SIGKILL");
  await until("the server is back", async () => back() === 1);
  expect(await query(store.url, "select 1 as one")).toEqual([{ one: 1 }]);

  const client = new pg.Client(store.url);
  client.on("error", () => lines.push("client broke"));
  await client.connect();
  const { rows } = await client.query("select pg_backend_pid() as pid");
  const server = await postmasterOf(directory);
  kill(rows[0].pid, "SIGKILL");
  await until("the server is back", async () => back() === 2);
  expect(await postmasterOf(directory)).toBe(server);
  expect(await query(store.url, "select 1 as one")).toEqual([{ one: 1 }]);
  await store.release();
  expect(await isStopped(directory)).toBe(true);
});

test("a store whose server was killed while not in use recovers", async () => {
  const directory = await scratch();
  const user = startUser({ directory });
  await user.next("open");
  user.tell("query create table kept as select generate_series(1, 100) as n");
  await user.next("rows");
  await user.kill();
  await killServer(join(directory, "data"));
  const store = await openEmbedded({ directory });
  expect(store.started).toBe("recovered");
  expect(await query(store.url, "select sum(n)::int as n from kept")).toEqual([{ n: 5050 }]);
  await store.release();
});

test("a child of a killed server that keeps working is ended before a new server starts", async () => {
  const directory = await scratch();
  const user = startUser({ directory });
  const { url } = await user.next("open");
  const client = new pg.Client(url as string);
  client.on("error", () => undefined);
  await client.connect();
  const { rows } = await client.query("select pg_backend_pid() as pid");
  const endless = client.query("do $$ begin loop perform 1; end loop; end $$").catch((error: Error) => error);
  await until("the statement runs", async () => {
    const state = "select state from pg_stat_activity where pid = ";
    return (await query(url as string, state + rows[0].pid))[0]?.state === "active";
  });
  await user.kill();
  kill(await postmasterOf(directory), "SIGKILL");
  await until(
    "the server is dead",
    async () => (await serverProcesses(join(directory, "data"))).postmaster === undefined,
  );
  expect((await serverProcesses(join(directory, "data"))).children).toContain(rows[0].pid);

  const lines: string[] = [];
  const store = await openEmbedded({ directory, log: (line) => lines.push(line) });
  expect(store.started).toBe("recovered");
  expect(lines).toContain("ending 1 left-over processes of a dead server");
  expect(await endless).toBeInstanceOf(Error);
  expect((await serverProcesses(join(directory, "data"))).children).not.toContain(rows[0].pid);
  await store.release();
});

test("stale pid files whose number belongs to another process are ignored", async () => {
  const directory = await scratch();
  const store = await openEmbedded({ directory });
  await query(store.url, "create table kept as select 1 as n");
  const files = [join(directory, "data", "postmaster.pid"), join(directory, "run", ".s.PGSQL.5432.lock")];
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
  await store.release();

  // The pid files name a process of the server's own user that is not PostgreSQL. PostgreSQL itself would take it for a running server.
  const { uid, gid } = await stat(join(directory, "data"));
  const stranger = spawn("sleep", ["600"], { stdio: "ignore", ...(process.getuid?.() === 0 ? { uid, gid } : {}) });
  finallyDo(async () => {
    stranger.kill("SIGKILL");
  });
  for (const [i, file] of files.entries()) {
    await writeFile(file, (texts[i] as string).replace(/^\d+/, String(stranger.pid)), { mode: 0o600 });
    await chown(file, uid, gid);
  }

  const again = await openEmbedded({ directory });
  expect(await query(again.url, "select n from kept")).toEqual([{ n: 1 }]);
  expect(await postmasterOf(directory)).not.toBe(stranger.pid);
  await again.release();
  expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
});

test("a pid file left empty by a full disk or a crash does not prevent a start", async () => {
  const directory = await scratch();
  await (await openEmbedded({ directory })).release();
  await writeFile(join(directory, "data", "postmaster.pid"), "");
  const store = await openEmbedded({ directory });
  expect(store.started).toBe("again");
  await store.release();
});
