/**
 * A folder in memory for what tests write and throw away. On a disk, making and removing the files of tables and databases took the gate a
 * tenth of its time.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";

const place = "/dev/shm";
const prefix = "carillon-tests-";
/** The gate leaves up to 3 GB there before its end. */
const roomLeast = 6 * 2 ** 30;
const memoryLeast = 12 * 2 ** 30;

/**
 * Makes it the folder for temporary files of this process and of those that it starts, until this one ends. Nothing is changed where somebody
 * chose another, or where there is no room.
 */
export function useMemory() {
  if (process.env.TMPDIR || !isFit()) return;
  for (const name of readdirSync(place)) if (name.startsWith(prefix) && !isAlive(name)) remove(name);
  const own = `${prefix}${process.pid}`;
  const folder = join(place, own);
  mkdirSync(folder);
  // As /tmp is: servers and tests that run as other users make folders there.
  chmodSync(folder, 0o1777);
  process.env.TMPDIR = folder;
  process.on("exit", () => remove(own));
}

/** A container's is small, and lets no program be started from it. */
function isFit() {
  if (!existsSync(place) || !existsSync("/proc/mounts")) return false;
  const mount = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .find((line) => line.split(" ")[1] === place);
  if (!mount?.startsWith("tmpfs ") || /\bnoexec\b/.test(mount)) return false;
  const { bavail, bsize } = statfsSync(place);
  return bavail * bsize >= roomLeast && freemem() >= memoryLeast;
}

/** @param {string} name of a run's folder */
const isAlive = (name) => existsSync(`/proc/${name.slice(prefix.length)}`);

/** @param {string} name */
const remove = (name) => rmSync(join(place, name), { recursive: true, force: true, maxRetries: 5 });
