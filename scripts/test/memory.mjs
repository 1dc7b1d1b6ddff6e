/** Puts the tests' temporary files into memory. On a disk, creating and deleting the files of tables took a tenth of the gate's time. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";
import { say } from "../ready.mjs";

const shared = "/dev/shm";
const prefix = "carillon-tests-";
/** The gate has up to 3 GB of temporary files before its end. */
const roomLeast = 6 * 2 ** 30;
const memoryLeast = 12 * 2 ** 30;

/**
 * Sets TMPDIR to a new folder in memory, which is deleted when this process exits. Changes nothing if TMPDIR is set already, or if memory is
 * short.
 */
export function useMemory() {
  if (process.env.TMPDIR || !existsSync("/proc/mounts") || !existsSync(shared)) return;
  removeLeftovers(shared);
  if (!isFit()) return;
  // Not the number of the process alone: a killed run with the same number may have left a folder that could not be deleted.
  const folder = mkdtempSync(join(shared, `${prefix}${process.pid}-`));
  // World-writable like /tmp: servers and tests that run as other users create folders there.
  chmodSync(folder, 0o1777);
  process.env.TMPDIR = folder;
  process.on("exit", () => remove(folder));
}

/**
 * Deletes what killed runs left. What cannot be deleted stays, with a line that says so: the leftovers of another run say nothing about
 * this one.
 * @param {string} place the folder that holds the runs' folders
 */
export function removeLeftovers(place) {
  for (const name of readdirSync(place)) if (name.startsWith(prefix) && !isAlive(name)) remove(join(place, name));
}

/** In a container /dev/shm is small and mounted with noexec. */
function isFit() {
  const mount = mounts().find(({ folder }) => folder === shared);
  if (mount?.type !== "tmpfs" || mount.options.includes("noexec")) return false;
  const { bavail, bsize } = statfsSync(shared);
  return bavail * bsize >= roomLeast && freemem() >= memoryLeast;
}

/** @param {string} name of a run's folder */
const isAlive = (name) => existsSync(`/proc/${Number.parseInt(name.slice(prefix.length), 10)}`);

/** @param {string} folder */
function remove(folder) {
  // A test that fills a disk mounts a small one. The folder of a mount cannot be deleted.
  const inside = mounts().filter((mount) => mount.folder.startsWith(`${folder}/`));
  for (const mount of inside.reverse()) spawnSync("umount", ["--lazy", mount.folder], { stdio: "ignore" });
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  } catch (error) {
    say(
      `${folder} is left of a run of the tests and cannot be deleted: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** @returns {{ folder: string, type: string, options: string[] }[]} in the order of mounting */
function mounts() {
  return readFileSync("/proc/mounts", "utf8")
    .trim()
    .split("\n")
    .map((line) => {
      const [, folder = "", type = "", options = ""] = line.split(" ");
      return { folder, type, options: options.split(",") };
    });
}
