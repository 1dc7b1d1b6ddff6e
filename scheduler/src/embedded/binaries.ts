import { randomBytes } from "node:crypto";
import { chmod, constants, copyFile, mkdir, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { CarillonError } from "../base/errors.ts";
import { codeOf } from "./failure.ts";
import { type Owner, run } from "./program.ts";
import { oldestMajor } from "./settings.ts";

/** A folder with the programs `postgres` and `initdb`, which the server's user can run. */
export interface Binaries {
  readonly folder: string;
  /** PostgreSQL's version, such as "18.4". */
  readonly version: string;
  readonly major: number;
}

export interface BinarySearch {
  /** The folder that the user configured; if set, no other folder is searched. */
  given?: string | undefined;
  /** The major version that the existing data needs; if set, other versions are rejected. */
  major?: number | undefined;
  /** The user that will run the programs; undefined: this process's user. */
  owner?: Owner | undefined;
  /** The folder for a copy of the npm package's programs, used if the server's user cannot run them in place. */
  copies: string;
  signal: AbortSignal;
  log: (line: string) => void;
  /** Return the npm package's folder `native` and the folders of the operating system; tests replace these functions. */
  packageFolder?: () => string | undefined | Promise<string | undefined>;
  machineFolders?: () => Promise<string[]>;
}

/**
 * Searches for PostgreSQL's programs.
 * @throws EMBEDDED_FAILED if usable programs were found, but only with another major version than the data; otherwise
 * EMBEDDED_UNAVAILABLE
 */
export async function findBinaries(search: BinarySearch): Promise<Binaries> {
  const refused: string[] = [];
  const others: string[] = [];
  for await (const folder of candidates(search, refused)) {
    const found = await probe(folder, search);
    if (typeof found === "string") refused.push(`${folder}: ${found}`);
    else if (found.major < oldestMajor) refused.push(`${folder}: ${found.version} is older than ${oldestMajor}`);
    else if (search.major !== undefined && found.major !== search.major) others.push(`${found.version} in ${folder}`);
    else return found;
  }
  if (search.major !== undefined && others.length > 0) {
    throw new CarillonError(
      "EMBEDDED_FAILED",
      `The data was made by PostgreSQL ${search.major}, and the binaries are of another major version: ${others.join("; ")}.`,
      {
        hint:
          `Install PostgreSQL ${search.major} (or name its folder by the option \`binaries\`) to go on with this data, or to ` +
          "bring it to the other version by pg_dump and pg_restore: docs/operate/embedded.md has the steps. Or move the store's folder aside to start empty.",
      },
    );
  }
  throw unavailable(refused);
}

export function unavailable(refused: readonly string[]): CarillonError {
  const why = refused.length > 0 ? ` (${refused.join("; ")})` : "";
  return new CarillonError(
    "EMBEDDED_UNAVAILABLE",
    `No PostgreSQL binaries for ${process.platform}-${process.arch}${why}.`,
    {
      hint:
        "Install them: `npm install @carillon/embedded`. Or give the URL of a server: DATABASE_URL=postgres://user@host/database, " +
        `or carillon({ store: url }). Or install PostgreSQL ${oldestMajor} or newer on this machine.`,
    },
  );
}

async function* candidates(search: BinarySearch, refused: string[]): AsyncGenerator<string> {
  if (search.given !== undefined) return yield search.given;
  const native = await (search.packageFolder ?? packageFolder)();
  if (native !== undefined) {
    const usable = await usablePackage(native, search);
    if (usable === undefined) refused.push(`${native}: cannot be run, nor copied`);
    else yield usable;
  }
  yield* await (search.machineFolders ?? machineFolders)();
}

/** The folder `native` of the optional peer dependency @carillon/embedded; undefined if that is not installed. */
async function packageFolder(): Promise<string | undefined> {
  try {
    return (await import("@carillon/embedded")).nativeFolder();
  } catch (error) {
    if (codeOf(error) === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** The folders of Debian and Red Hat packages and of Homebrew, the newest version first, then those of PATH. */
async function machineFolders(): Promise<string[]> {
  const folders: { folder: string; version: number }[] = [];
  const parents: [string, RegExp][] = [
    ["/usr/lib/postgresql", /^(\d+)$/],
    ["/usr", /^pgsql-(\d+)$/],
    ["/opt/homebrew/opt", /^postgresql@(\d+)$/],
    ["/usr/local/opt", /^postgresql@(\d+)$/],
  ];
  for (const [parent, pattern] of parents) {
    for (const name of await readdir(parent).catch(() => [])) {
      const version = Number(pattern.exec(name)?.[1] ?? 0);
      if (version > 0) folders.push({ folder: join(parent, name, "bin"), version });
    }
  }
  folders.sort((a, b) => b.version - a.version);
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder.startsWith("/"));
  const there: string[] = [];
  for (const folder of [...folders.map((one) => one.folder), ...path]) {
    if (!there.includes(folder) && (await exists(join(folder, "postgres")))) there.push(folder);
  }
  return there;
}

/**
 * Runs the program as the server's user, because only this proves that the user can access it and that it finds its libraries.
 * @returns the programs, or the reason why they cannot be used
 */
async function probe(folder: string, search: BinarySearch): Promise<Binaries | string> {
  if (!(await exists(join(folder, "initdb")))) return "has no initdb";
  const { code, output } = await run(join(folder, "postgres"), ["--version"], search);
  const version = /PostgreSQL\) (\d+(?:\.\d+)*)/.exec(output)?.[1];
  if (code !== 0 || version === undefined) return output.trim() || `exit code ${code}`;
  return { folder, version, major: Number.parseInt(version, 10) };
}

/** @returns the folder of the npm package's programs, in place or copied; undefined if neither can be run */
async function usablePackage(native: string, search: BinarySearch): Promise<string | undefined> {
  if (await restoreLinks(native)) {
    const found = await probe(join(native, "bin"), search);
    if (typeof found !== "string") return join(native, "bin");
  }
  const manifest = JSON.parse(await readFile(join(native, "..", "package.json"), "utf8")) as { version: string };
  const copy = join(search.copies, `postgresql-${manifest.version}`);
  if (typeof (await probe(join(copy, "bin"), search)) !== "string") return join(copy, "bin");
  const draft = `${copy}.${randomBytes(4).toString("hex")}`;
  await mkdir(search.copies, { recursive: true });
  try {
    await copyTree(native, draft);
    await restoreLinks(draft);
    await rename(draft, copy).catch((error: unknown) => {
      // Another process has made the copy first.
      if (!["ENOTEMPTY", "EEXIST"].includes(codeOf(error))) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  search.log(`copied the PostgreSQL binaries to ${copy}`);
  return typeof (await probe(join(copy, "bin"), search)) === "string" ? undefined : join(copy, "bin");
}

/**
 * Creates the package's symbolic links. An npm package cannot contain links, so it lists them and its install script creates them, unless
 * install scripts are disabled.
 * @returns false if links are missing and this process may not create them
 */
async function restoreLinks(native: string): Promise<boolean> {
  const list = JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  const inside = (path: string) => join(native, path.replace(/^native\//, ""));
  for (const { source, target } of list) {
    if (await exists(inside(target))) continue;
    try {
      // Each link is in the same folder as its target, so the target's file name suffices.
      await symlink(source.slice(source.lastIndexOf("/") + 1), inside(target));
    } catch (error) {
      if (codeOf(error) === "EEXIST") continue;
      if (["EACCES", "EPERM", "EROFS", "ENOENT"].includes(codeOf(error))) return false;
      throw error;
    }
  }
  return true;
}

/**
 * Copies what a running server needs, readable for all users; leaves out links (see `restoreLinks`), static libraries and those
 * of embedded SQL (ECPG).
 */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) {
      if (entry.name !== "pkgconfig") await copyTree(source, target);
    } else if (entry.isFile() && !/\.a$|^libecpg|^libpgtypes/.test(entry.name)) {
      await copyFile(source, target, constants.COPYFILE_FICLONE);
      await chmod(target, (await stat(source)).mode & 0o111 ? 0o755 : 0o644);
    }
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES"].includes(codeOf(error))) return false;
    throw error;
  }
}
