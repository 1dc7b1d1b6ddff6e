/** Puts the temporary files of tests into memory, because creating and deleting table files on a disk takes much of the tests' time. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";
import { say } from "../ready.mjs";

const shared = "/dev/shm";
const prefix = "carillon-tests-";
/** Free space that is needed, in bytes: twice the 3 GB that temporary files of a gate can take. */
const roomLeast = 6 * 2 ** 30;
const memoryLeast = 12 * 2 ** 30;

/**
 * Unless TMPDIR is set, deletes the folders left by killed runs, and sets TMPDIR to a new folder in /dev/shm, which is deleted when this
 * process exits. TMPDIR stays unset if /dev/shm or /proc/mounts is missing, or if /dev/shm is not fit (`isFit`).
 */
export function useMemory() {
  if (process.env.TMPDIR || !existsSync("/proc/mounts") || !existsSync(shared)) return;
  removeLeftovers(shared);
  if (!isFit()) return;
  // The name has a random part, because a killed run with the same process id may have left a folder that cannot be deleted.
  const folder = mkdtempSync(join(shared, `${prefix}${process.pid}-`));
  // All users may write to the folder, as to /tmp, because servers and tests that run as other users create folders in it.
  chmodSync(folder, 0o1777);
  process.env.TMPDIR = folder;
  process.on("exit", () => remove(folder));
}

/**
 * Deletes the folders that killed runs left. If one cannot be deleted, this is logged and ignored, because it does not affect the present
 * run.
 * @param {string} place the folder that contains the runs' folders
 */
export function removeLeftovers(place) {
  for (const name of readdirSync(place)) if (name.startsWith(prefix) && !isAlive(name)) remove(join(place, name));
}

/**
 * True if /dev/shm is a tmpfs that has enough free space and allows execution, and enough memory is free. In a container, /dev/shm is
 * usually small and mounted with noexec.
 */
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
  // A test that fills a disk mounts a small file system, and the folder of a mount cannot be deleted.
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
