import { createHash, randomBytes } from "node:crypto";
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { CarillonError } from "../base/errors.ts";
import { codeOf, fileFailure } from "./failure.ts";
import { chooseOwner, reaches } from "./owner.ts";
import type { Owner } from "./program.ts";

/** The files and folders of one store. */
export interface Place {
  /** The configured folder as an absolute path. */
  readonly directory: string;
  /** The folder that contains the store: `directory`, or another one if the server's user cannot access `directory`. */
  readonly home: string;
  readonly data: string;
  /** The private folder of the server's socket and of the start lock; the path is short enough for a Unix socket. */
  readonly run: string;
  readonly log: string;
  /** The user that runs the server; undefined: this process's user. */
  readonly owner: Owner | undefined;
}

/** The folder that root uses for stores and copies of programs that the server's user cannot access in place. */
export const rootHome = "/var/lib/carillon";

/**
 * The maximum length of the path `run` in bytes. A socket's path has at most 103 bytes on macOS and 107 on Linux; the longest names in the
 * folder have 13 (".s.PGSQL.5432", "start.1234567").
 */
const longestRunBytes = 103 - 14;

/**
 * Determines the store's paths and creates the folder.
 * @throws STORE_MISSING if the file `location` names a missing folder; STORE_READ_ONLY, STORE_FULL, STORE_REFUSED,
 * EMBEDDED_FAILED
 */
export async function locate(asked: string, log: (line: string) => void): Promise<Place> {
  const directory = resolve(asked);
  try {
    const made = await makeFolder(directory);
    const real = await realpath(directory);
    const owner = process.getuid?.() === 0 ? await chooseOwner(real) : undefined;
    if (made) {
      await writeFile(join(real, ".gitignore"), "*\n");
      // The server's user becomes the folder's owner, so that this user can later use the store without root.
      if (owner) for (const path of [real, join(real, ".gitignore")]) await chown(path, owner.uid, owner.gid);
    }
    const home = await realpath(await findHome(real, owner, log));
    const run = join(home, "run");
    await privateFolder(run, owner);
    return {
      directory,
      home,
      data: join(home, "data"),
      run: await shortPath(run),
      log: join(home, "server.log"),
      owner,
    };
  } catch (error) {
    throw fileFailure(error, `cannot use the folder ${directory}`);
  }
}

/**
 * Creates the run folder and its short path. Called before each attempt to attach to or start the server, because the short path
 * may be in a folder that is cleaned regularly.
 */
export async function ensurePlace(place: Place): Promise<void> {
  try {
    const run = join(place.home, "run");
    await privateFolder(run, place.owner);
    if (place.run !== run) await alias(place.run, run);
  } catch (error) {
    throw fileFailure(error, `cannot use the folder ${place.directory}`);
  }
}

/**
 * Returns the folder for the store: `directory` itself if possible. If this process is root, the server's user may be unable to
 * access it, for example in a home directory of mode 0700, whose mode must not be changed. The store is then in another folder,
 * whose path is written to the file `location`.
 * @throws STORE_MISSING if the folder that `location` names is missing
 */
async function findHome(directory: string, owner: Owner | undefined, log: (line: string) => void): Promise<string> {
  const pointer = join(directory, "location");
  for (;;) {
    const named = await readIfThere(pointer);
    if (named !== undefined) {
      const home = named.trim();
      if ((await stat(home).catch(() => undefined))?.isDirectory()) return home; // an unreadable folder is treated as missing
      throw new CarillonError("STORE_MISSING", `${pointer} names ${home}, which is not there.`, {
        hint: "Bring that folder back, or delete the file to start with an empty store.",
      });
    }
    if (owner === undefined || (await reaches(directory, owner))) return directory;
    const prefix = `${basename(dirname(directory)).replace(/[^\w.-]/g, "_")}-${digest(directory).slice(0, 8)}-`;
    await mkdir(rootHome, { recursive: true });
    await chmod(rootHome, 0o755);
    const older = (await readdir(rootHome)).filter((name) => name.startsWith(prefix));
    if (older.length > 0)
      log(`${rootHome} still has stores of ${directory} that nothing points to: ${older.join(", ")}`);
    const home = await mkdtemp(join(rootHome, prefix));
    await chmod(home, 0o755);
    await chown(home, owner.uid, owner.gid);
    const draft = `${pointer}.${randomBytes(4).toString("hex")}`;
    await writeFile(draft, `${home}\n`);
    try {
      await link(draft, pointer);
      log(`the server's user cannot reach ${directory}: the store lies in ${home}`);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      await rm(home, { recursive: true }); // another process has written `location` first, and its folder is used
    } finally {
      await rm(draft);
    }
  }
}

/**
 * Ensures that the folder exists, with mode 0700 and the right owner, because the server trusts every process that can reach its
 * socket.
 * @throws STORE_REFUSED if the folder belongs to another user and this process is not root
 */
async function privateFolder(path: string, owner: Owner | undefined): Promise<void> {
  const made = await mkdir(path, { mode: 0o700 }).then(() => true, existing);
  const { uid, mode } = await stat(path);
  const wanted = owner?.uid ?? process.getuid?.() ?? uid;
  if (uid !== wanted && owner === undefined) {
    throw new CarillonError(
      "STORE_REFUSED",
      `The embedded store in ${dirname(path)} belongs to the user with id ${uid}.`,
      {
        hint: "Run as that user or as root, or give another folder by the option `directory`.",
      },
    );
  }
  if (uid !== wanted && owner !== undefined) await chown(path, owner.uid, owner.gid);
  if (made || (mode & 0o777) !== 0o700) await chmod(path, 0o700);
}

/**
 * Returns `run`, or if that is too long for a socket, a symbolic link to it in a private folder of the system's temporary folder.
 */
async function shortPath(run: string): Promise<string> {
  if (Buffer.byteLength(run) <= longestRunBytes) return run;
  const uid = process.getuid?.() ?? 0;
  const name = digest(run).slice(0, 12);
  const bases = [tmpdir(), "/tmp"].map((base) => join(base, `carillon-${uid}`));
  const base = bases.find((path) => Buffer.byteLength(join(path, name)) <= longestRunBytes) ?? (bases[1] as string);
  const path = join(base, name);
  try {
    await alias(path, run);
    return path;
  } catch (error) {
    if (!(error instanceof Occupied)) throw error;
    // The folder of that name in the temporary folder is not private to this user, so the link gets an unpredictable name.
    const own = join(await mkdtemp("/tmp/carillon-"), name);
    await alias(own, run);
    return own;
  }
}

class Occupied extends Error {}

async function alias(path: string, target: string): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { mode: 0o700 }).catch(existing);
  const found = await lstat(folder);
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0) {
    throw new Occupied(`${folder} is not a private folder of this user`);
  }
  if ((await readlink(path).catch(() => undefined)) === target) return; // a missing or other link is replaced below
  const draft = `${path}.${randomBytes(4).toString("hex")}`;
  await symlink(target, draft);
  await rename(draft, path);
}

/**
 * Creates the folder and its parents; `recursive` of `mkdir` is not used, because it reports a read-only file system as ENOENT.
 * @returns true if the folder is new
 */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST" && (await stat(path)).isDirectory()) return false;
    if (codeOf(error) !== "ENOENT" || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    return makeFolder(path);
  }
}

const digest = (text: string) => createHash("sha256").update(text).digest("hex");

function existing(error: unknown): false {
  if (codeOf(error) === "EEXIST") return false;
  throw error;
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
