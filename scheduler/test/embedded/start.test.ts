import { randomBytes } from "node:crypto";
import { appendFile, mkdir, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { isCarillonError } from "../../src/base/errors.ts";
import { type EmbeddedStore, openEmbedded } from "../../src/embedded/index.ts";
import { boundLog, logBytes } from "../../src/embedded/log-file.ts";
import { countUsers, finallyDo, isStopped, killServer, query, scratch, startUser, until } from "./stage.ts";

const isSettled = (work: Promise<unknown>) =>
  Promise.race([
    work.then(
      () => true,
      () => true,
    ),
    new Promise<boolean>((resolve) => setImmediate(resolve, false)),
  ]);

test("the first start creates a store, a later one starts it, a concurrent one attaches, the last release stops it", async () => {
  const directory = join(await scratch(), "project", ".carillon");
  const open = () => openEmbedded({ directory });

  const first = await open();
  expect(first).toMatchObject({ started: "first", directory, version: expect.stringMatching(/^\d+\.\d+$/) });
  const [settings] = await query(
    first.url,
    `select current_user as "user", current_database() as database, pg_encoding_to_char(encoding) as encoding, datcollate as collate,
       datlocale as locale, current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit,
       current_setting('data_checksums') as checksums, current_setting('listen_addresses') as listens,
       current_setting('max_connections') as connections, current_setting('shared_buffers') as buffers,
       current_setting('max_wal_size') as wal, current_setting('full_page_writes') as pages
     from pg_database where datname = current_database()`,
  );
  expect(settings).toEqual({
    user: "carillon",
    database: "carillon",
    encoding: "UTF8",
    collate: "C",
    locale: "C.UTF-8",
    fsync: "on",
    commit: "on",
    checksums: "on",
    listens: "",
    connections: "200",
    buffers: "128MB",
    wal: "512MB",
    pages: "on",
  });
  expect(((await stat(first.connection.host)).mode & 0o777).toString(8)).toBe("700");
  expect(await readFile(join(directory, ".gitignore"), "utf8")).toBe("*\n");
  await query(first.url, "create table kept (n int); insert into kept values (7)");

  const beside = await open();
  expect(beside).toMatchObject({ started: "attached", url: first.url });
  await first.release();
  expect(await query(beside.url, "select n from kept")).toEqual([{ n: 7 }]);
  await beside.release();
  await beside.release();
  expect(await isStopped(directory)).toBe(true);

  const again = await open();
  expect(again).toMatchObject({ started: "again", url: first.url });
  expect(await query(again.url, "select n from kept")).toEqual([{ n: 7 }]);
  await again.release();
  await expect(again.revive()).rejects.toMatchObject({ code: "STOPPED" });
  expect(await isStopped(directory)).toBe(true);
});

test("a path too long for a Unix socket is reached through a short path, also through a symbolic link", async () => {
  const root = await scratch();
  const deep = join(root, "x".repeat(120), "ü ' \\", ".carillon");
  await mkdir(deep, { recursive: true });
  await symlink(deep, join(root, "short"));
  const store = await openEmbedded({ directory: deep });
  finallyDo(() => rm(store.connection.host, { force: true }));
  expect(Buffer.byteLength(store.connection.host)).toBeLessThan(90);
  const other = await openEmbedded({ directory: join(root, "short") });
  expect(other).toMatchObject({ started: "attached", directory: join(root, "short"), url: store.url });
  expect(await query(other.url, "select 1 as one")).toEqual([{ one: 1 }]);
  // The test removes the short path, as a clean-up of the temporary folder would. The next process that opens the store restores
  // the path.
  await rm(store.connection.host);
  await expect(query(store.url, "select 1 as one")).rejects.toMatchObject({ code: "ENOENT" });
  const third = await openEmbedded({ directory: deep });
  expect(await query(store.url, "select 1 as one")).toEqual([{ one: 1 }]);
  await Promise.all([store.release(), other.release(), third.release()]);
  expect(await isStopped(deep)).toBe(true);
});

test("the URL and the connection options reach the same database", async () => {
  const directory = await scratch();
  const store = await openEmbedded({ directory });
  const { searchParams, username, pathname } = new URL(store.url);
  expect({ host: searchParams.get("host"), user: username, database: pathname.slice(1) }).toEqual({
    host: store.connection.host,
    user: store.connection.user,
    database: store.connection.database,
  });
  expect(await countUsers(store.url)).toBe(1);
  await store.release();
});

test("opening can be aborted before it begins and while the data folder is created", async () => {
  const directory = await scratch();
  const given = new AbortController();
  const lines: string[] = [];
  const opening = openEmbedded({
    directory,
    signal: given.signal,
    log: (line) => {
      lines.push(line);
      given.abort(new Error("enough"));
    },
  });
  await expect(opening).rejects.toMatchObject({ code: "CANCELLED" });
  expect(lines).toHaveLength(1);
  await expect(openEmbedded({ directory, signal: AbortSignal.abort() })).rejects.toSatisfy((error) =>
    isCarillonError(error, "CANCELLED"),
  );
  expect((await readdir(directory)).filter((name) => name.startsWith("data"))).toEqual([]);
  const store = await openEmbedded({ directory });
  expect(store.started).toBe("first");
  await store.release();
});

test("a start that is aborted after the server's launch leaves no server behind", async () => {
  const directory = await scratch();
  await (await openEmbedded({ directory })).release();
  const given = new AbortController();
  const log = join(directory, "server.log");
  const { size } = await stat(log);
  const opening = openEmbedded({ directory, signal: given.signal });
  await until("the server is launched", async () => (await stat(log)).size > size || (await isSettled(opening)));
  given.abort();
  const store = await opening.catch((error: unknown) => error);
  if (isCarillonError(store)) expect(store.code).toBe("CANCELLED");
  else await (store as EmbeddedStore).release();
  expect(await isStopped(directory)).toBe(true);
});

test("a process killed while it creates the data folder leaves nothing that disturbs the next one", async () => {
  const directory = await scratch();
  const user = startUser({ directory });
  const drafts = async () => (await readdir(directory)).filter((name) => /^data\./.test(name));
  await until("initdb is at work", async () => (await drafts()).length > 0);
  await user.kill();
  const store = await openEmbedded({ directory });
  expect(store.started).toBe("first");
  await store.release();
  expect(await readdir(directory)).toContain("data");
});

test("the size of the server's log is bounded", async () => {
  const directory = await scratch();
  const store = await openEmbedded({ directory });
  const log = join(directory, "server.log");
  await appendFile(log, `${randomBytes(16).toString("hex")}\n`.repeat(Math.ceil(logBytes / 33)));
  await boundLog(log);
  expect((await stat(log)).size).toBe(0);
  expect((await stat(`${log}.1`)).size).toBeGreaterThan(logBytes);
  // The server goes on writing to the same file, which is empty now.
  await expect(query(store.url, "select no_such_column")).rejects.toMatchObject({ code: "42703" });
  await until("the server writes its log", async () => (await readFile(log, "utf8")).includes("no_such_column"));
  expect((await stat(log)).size).toBeLessThan(10_000);
  await store.release();
});

test("the user's PG… variables affect neither the server nor its clients", async () => {
  const variables = { PGSSLMODE: "require", PGHOST: "db.example", PGUSER: "root", PGDATA: "/nowhere", PGPORT: "1" };
  Object.assign(process.env, variables);
  finallyDo(async () => {
    for (const name of Object.keys(variables)) delete process.env[name];
  });
  const directory = await scratch();
  const store = await openEmbedded({ directory });
  expect(await query(store.url, "select current_user as user")).toEqual([{ user: "carillon" }]);
  await store.release();
  expect(await isStopped(directory)).toBe(true);
});

test("a missing store is not replaced by an empty one: opening and reviving it fail with STORE_MISSING", async () => {
  const directory = await scratch();
  const data = join(directory, "data");
  const store = await openEmbedded({ directory });
  await query(store.url, "create table kept as select 1 as one");
  await killServer(data);
  await rename(data, join(directory, "elsewhere"));
  const missing = { code: "STORE_MISSING", hint: expect.stringContaining("Bring data/ back") };
  // Polls, because an attempt to revive the store may have begun while the data was still there.
  await expect.poll(() => store.revive().catch((error) => error)).toMatchObject(missing);
  await store.release();
  await rm(join(directory, ".store"));
  for (const create of [undefined, true])
    await expect(openEmbedded({ directory, create }), "by its log").rejects.toMatchObject(missing);
  await rename(join(directory, "elsewhere"), data);
  const again = await openEmbedded({ directory, create: false });
  expect(await query(again.url, "select one from kept")).toEqual([{ one: 1 }]);
  await again.release();
  await rename(data, join(directory, "elsewhere"));
  await rm(join(directory, "server.log"));
  await expect(openEmbedded({ directory }), "by its mark").rejects.toMatchObject(missing);
});

test("in production an empty store is created only on request", async () => {
  const directory = await scratch();
  vi.stubEnv("NODE_ENV", "production");
  finallyDo(async () => void vi.unstubAllEnvs());
  const [there, absent] = [directory, join(directory, "absent")];
  for (const where of [there, absent])
    await expect(openEmbedded({ directory: where })).rejects.toMatchObject({
      code: "STORE_MISSING",
      hint: expect.stringContaining("CARILLON_CREATE_STORE=1"),
    });
  await expect(stat(absent)).rejects.toMatchObject({ code: "ENOENT" });
  const lines: string[] = [];
  await (await openEmbedded({ directory, create: true, log: (line) => lines.push(line) })).release();
  expect(lines).toContainEqual(expect.stringContaining(`no store was in ${directory}: making an empty one`));
  expect(await openEmbedded({ directory }).then((store) => store.release().then(() => store.started))).toBe("again");
});
