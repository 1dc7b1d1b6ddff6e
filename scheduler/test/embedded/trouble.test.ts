import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { isCarillonError } from "../../src/base/errors.ts";
import { type BinarySearch, findBinaries } from "../../src/embedded/binaries.ts";
import { type EmbeddedStore, openEmbedded } from "../../src/embedded/index.ts";
import { inspectPostgres } from "../../src/store/postgres/runs/inspect.ts";
import { finallyDo, isRoot, isStopped, killServer, postmasterOf, query, scratch, startUser, until } from "./stage.ts";

const exec = promisify(execFile);

/** Mounts a small file system, so that a full disk affects only this store. */
async function smallDisk(megabytes: number, within?: string): Promise<string> {
  const folder = join(within ?? (await scratch()), "disk");
  await mkdir(folder, { recursive: true });
  try {
    await exec("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=755`, "carillon-test", folder]);
  } catch (error) {
    throw new Error(
      "This test needs a small tmpfs: run it as root where mount is allowed (docker run --cap-add SYS_ADMIN).",
      {
        cause: error,
      },
    );
  }
  finallyDo(async () => {
    await killServer(join(folder, "data"));
    if (await isMounted(folder)) await exec("umount", ["-l", folder]);
  });
  return folder;
}

const isMounted = async (folder: string) => (await readFile("/proc/mounts", "utf8")).includes(` ${folder} `);

const ballast = (folder: string) => join(folder, "ballast");

/** Fills the file system that contains `folder`. */
async function fill(folder: string): Promise<void> {
  const full = await exec("dd", ["if=/dev/zero", `of=${ballast(folder)}`, "bs=4k"]).catch((error: Error) => error);
  expect(String(full)).toContain("No space left on device");
}

const failure = (opening: Promise<unknown>) =>
  opening.then(
    () => undefined,
    (error: unknown) => error,
  );

test("the small disk left mounted by a killed test run is deleted by the next run", async () => {
  const { removeLeftovers } = (await import(new URL("../../../scripts/test/memory.mjs", import.meta.url).href)) as {
    removeLeftovers(place: string): void;
  };
  const place = await scratch();
  // No process can have this id, because it is above the kernel's limit.
  const dead = join(place, "carillon-tests-4194305-abcdef");
  const names = ["carillon-tests-4194305", `carillon-tests-${process.pid}-abcdef`, "of-others-4194305"];
  for (const name of names) await mkdir(join(place, name));
  const disk = await smallDisk(1, join(dead, "test"));
  await writeFile(join(disk, "file"), "left");
  removeLeftovers(place);
  expect(await readdir(place)).toEqual(names.slice(1));
  expect(await isMounted(disk)).toBe(false);
});

test("a disk too small for the store gives STORE_FULL with initdb's own line, and nothing is left behind", async () => {
  const directory = await smallDisk(20);
  const error = await failure(openEmbedded({ directory }));
  expect(error).toMatchObject({
    code: "STORE_FULL",
    message: expect.stringContaining("No space left on device"),
    hint: expect.stringContaining("Free space"),
  });
  expect((await readdir(directory)).filter((name) => name.startsWith("data"))).toEqual([]);
});

test("a disk that is full at the start gives STORE_FULL; with space again the store starts without loss", async () => {
  const directory = await smallDisk(200);
  const store = await openEmbedded({ directory });
  await query(store.url, "create table kept as select generate_series(1, 100) as n");
  await store.release();
  await fill(directory);
  const error = await failure(openEmbedded({ directory }));
  expect(error).toMatchObject({ code: "STORE_FULL", hint: expect.stringContaining("Free space") });
  expect(await isStopped(directory)).toBe(true);
  await rm(ballast(directory));
  const again = await openEmbedded({ directory });
  expect(await query(again.url, "select count(*)::int as n from kept")).toEqual([{ n: 100 }]);
  await again.release();
});

test("a disk that fills up under a running server makes revive fail with STORE_FULL until there is space", async () => {
  const directory = await smallDisk(200);
  const lines: string[] = [];
  const store = await openEmbedded({ directory, log: (line) => lines.push(line) });
  await query(store.url, "create table kept (text text); insert into kept values ('before')");
  await fill(directory);
  // A table that cannot grow makes one statement fail, and the server continues.
  await expect(
    query(store.url, "insert into kept select repeat(md5(n::text), 50) from generate_series(1, 3000) n"),
  ).rejects.toMatchObject({ code: "53100" });
  await store.revive();
  const server = await postmasterOf(directory);
  // `carillon doctor` inspects the store like this and reports the full disk, or cannot connect because of it.
  const looked = await inspectPostgres(store.url, "carillon").catch((error: unknown) => error);
  if (isCarillonError(looked)) expect(looked).toMatchObject({ code: "STORE_FULL" });
  else expect(looked).toMatchObject({ server: { disk: "full", readOnly: false } });
  // On a full disk, a new connection may fail because it cannot write its cache files.
  const other = await openEmbedded({ directory }).catch((error: unknown) => error);
  if (isCarillonError(other)) expect(other).toMatchObject({ code: "STORE_FULL" });
  else await (other as EmbeddedStore).release();
  // If the write-ahead log cannot grow, the server terminates rather than lose a commit.
  const message = "select pg_logical_emit_message(true, 'test', repeat('x', 1000000)) from generate_series(1, 100)";
  expect(await failure(query(store.url, message))).toBeInstanceOf(Error);
  const lost = () => lines.some((line) => line.includes("lost"));
  // The server may find some space and recover by itself; then the test fills the disk again.
  const died = async () => {
    if (!lost()) await query(store.url, message).catch((error: unknown) => error);
    return lost();
  };
  await until("the server's death", died);
  expect(await failure(store.revive())).toMatchObject({
    code: "STORE_FULL",
    hint: expect.stringContaining("Free space"),
  });
  // The store also tries by itself to start the server again, so another start may be ending just now.
  await until("the refused server to be gone", () => isStopped(directory));
  await rm(ballast(directory));
  await store.revive();
  expect(await postmasterOf(directory)).not.toBe(server);
  expect(await query(store.url, "select text from kept")).toEqual([{ text: "before" }]);
  await store.release();
});

test("a read-only folder gives STORE_READ_ONLY, on a first start and on a later one", async () => {
  const directory = isRoot ? await smallDisk(200) : await scratch();
  const readOnly = async (on: boolean) => {
    // File modes do not restrict root, so as root the test uses a read-only file system.
    if (isRoot) await exec("mount", ["-o", `remount,${on ? "ro" : "rw"}`, directory]);
    else
      for (const path of [directory, join(directory, "run")])
        await chmod(path, on ? 0o500 : 0o700).catch(() => undefined /* the folder `run` may not exist */);
  };
  finallyDo(() => readOnly(false));
  await readOnly(true);
  const refusal = { code: "STORE_READ_ONLY", hint: expect.stringContaining("directory") };
  expect(await failure(openEmbedded({ directory: join(directory, "new") }))).toMatchObject(refusal);
  expect(await failure(openEmbedded({ directory }))).toMatchObject(refusal);
  await readOnly(false);
  await (await openEmbedded({ directory })).release();
  await readOnly(true);
  expect(await failure(openEmbedded({ directory }))).toMatchObject(refusal);
  await readOnly(false);
  await (await openEmbedded({ directory })).release();
});

test("data that becomes read-only under a running server gives STORE_READ_ONLY with the server's own line", async () => {
  const directory = await scratch();
  const store = await openEmbedded({ directory });
  await query(store.url, "create table kept as select 1 as n");
  const data = join(directory, "data");
  // The server never runs as root, so file modes restrict it.
  await chmod(data, 0o500);
  finallyDo(() => chmod(data, 0o700));
  process.kill(await postmasterOf(directory), "SIGKILL");
  await until("the server is dead", async () => isStopped(directory));
  if (isRoot) await rm(join(data, "postmaster.pid"), { force: true });
  const error = await failure(store.revive());
  expect(error).toMatchObject({ code: "STORE_READ_ONLY", message: expect.stringContaining("Permission denied") });
  if (isRoot) expect((error as Error).message).toContain("FATAL:");
  await chmod(data, 0o700);
  await store.revive();
  expect(await query(store.url, "select n from kept")).toEqual([{ n: 1 }]);
  await store.release();
});

test("a server that cannot start gives EMBEDDED_FAILED with its own line", async () => {
  const directory = await scratch();
  await (await openEmbedded({ directory })).release();
  const file = join(directory, "data", "postgresql.conf");
  const good = await readFile(file, "utf8");
  await writeFile(file, `${good}shared_buffers = 'a lot'\n`);
  expect(await failure(openEmbedded({ directory }))).toMatchObject({
    code: "EMBEDDED_FAILED",
    message: expect.stringContaining("shared_buffers"),
    hint: expect.stringContaining("server.log"),
  });
  await writeFile(file, good);
  await (await openEmbedded({ directory })).release();
});

test("a file in place of the folder gives a clear error", async () => {
  const directory = join(await scratch(), "file");
  await writeFile(directory, "");
  expect(await failure(openEmbedded({ directory }))).toMatchObject({
    code: "EMBEDDED_FAILED",
    message: expect.stringContaining(directory),
  });
});

const search = (copies: string): BinarySearch => ({
  copies,
  signal: new AbortController().signal,
  log: () => undefined,
});

test("missing binaries give EMBEDDED_UNAVAILABLE with a hint on the URL to configure", async () => {
  const empty = await scratch();
  const unavailable = {
    code: "EMBEDDED_UNAVAILABLE",
    hint: expect.stringMatching(/DATABASE_URL=postgres:.*carillon\({ store/),
  };
  const nothing = { ...search(empty), packageFolder: () => undefined, machineFolders: async () => [] };
  expect(await failure(findBinaries(nothing))).toMatchObject(unavailable);
  const error = await failure(openEmbedded({ directory: join(empty, "store"), binaries: empty }));
  expect(error).toMatchObject({ ...unavailable, message: expect.stringContaining(empty) });
});

test("without the npm package the machine's binaries are used, but only for a store of their own version", async () => {
  const folder = await scratch();
  const found = await findBinaries({ ...search(folder), packageFolder: () => undefined });
  expect(found.folder, "this machine has PostgreSQL of its own (on Debian: apt install postgresql)").not.toContain(
    "node_modules",
  );
  const old = join(folder, "old");
  const store = await openEmbedded({ directory: old, binaries: found.folder });
  expect(store).toMatchObject({ started: "first", version: found.version });
  expect(await query(store.url, "select current_setting('data_checksums') as checksums")).toEqual([
    { checksums: "on" },
  ]);
  await store.release();

  // The binaries of the npm package are found first but do not fit the data's version, so those of the machine are used.
  const again = await openEmbedded({ directory: old });
  finallyDo(() => killServer(join(old, "data")));
  expect(again).toMatchObject({ started: "again", version: found.version });
  await again.release();

  await writeFile(join(old, "data", "PG_VERSION"), "14\n");
  const error = await failure(openEmbedded({ directory: old }));
  expect(error).toSatisfy((thrown) => isCarillonError(thrown, "EMBEDDED_FAILED"));
  expect((error as Error).message).toMatch(/made by PostgreSQL 14.*another major version: \d+\.\d+ in /);
  expect(error).toMatchObject({ hint: expect.stringContaining("Install PostgreSQL 14") });
});

test("a process that may not open the store fails with the error's code", async () => {
  const directory = join(await scratch(), "file");
  await writeFile(directory, "");
  const user = startUser({ directory });
  await expect(user.next("open")).rejects.toThrow("EMBEDDED_FAILED");
});
