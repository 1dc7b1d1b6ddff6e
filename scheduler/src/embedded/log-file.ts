import { copyFile, open, stat, statfs, truncate } from "node:fs/promises";
import { codeOf } from "./failure.ts";

/** The size at which the server's log is cut. Its content moves to `.1`, so both files together stay under twice this size. */
export const logBytes = 8 * 1024 * 1024;

export const logCheckMs = 30_000;

/**
 * Copies and cuts the log in place, because the server holds the file open for appending. Every process that uses the store checks this
 * from time to time; if two processes cut at once, at worst an old line is lost.
 */
export async function boundLog(path: string): Promise<void> {
  try {
    if ((await stat(path)).size <= logBytes) return;
    await copyFile(path, `${path}.1`);
    await truncate(path);
  } catch (error) {
    // Ignores a log that is gone with its folder, or is another user's (root cuts it then). Without space for the copy it is cut all the
    // same.
    if (codeOf(error) === "ENOSPC") await truncate(path);
    else if (!["ENOENT", "EACCES", "EPERM", "EROFS"].includes(codeOf(error))) throw error;
  }
}

/** The log from `offset` on, but at most its last 64 KiB. */
export async function readLog(path: string, offset: number): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const from = Math.max(Math.min(offset, size), size - 65_536);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.subarray(0, bytesRead).toString("utf8");
  } finally {
    await file.close();
  }
}

/** How many bytes an unprivileged user may still write in this folder. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
