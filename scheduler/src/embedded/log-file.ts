import { copyFile, open, stat, statfs, truncate } from "node:fs/promises";
import { codeOf } from "./failure.ts";

/** The size at which the server's log is cut. Its content moves to `.1`, so the two stay under twice this. */
export const logBytes = 8 * 1024 * 1024;

export const logCheckMs = 30_000;

/**
 * Copies and cuts the log in place, because the server holds the file open for appending. Every process that uses the store checks now
 * and then; when two cut at once, at worst an old line is lost.
 */
export async function boundLog(path: string): Promise<void> {
  try {
    if ((await stat(path)).size <= logBytes) return;
    await copyFile(path, `${path}.1`);
    await truncate(path);
  } catch (error) {
    // Gone with its folder, or another user's (root cuts it then), or no space for the copy: cut it all the same.
    if (codeOf(error) === "ENOSPC") await truncate(path);
    else if (!["ENOENT", "EACCES", "EPERM", "EROFS"].includes(codeOf(error))) throw error;
  }
}

/** The log from `offset` on, at most its last 64 KiB. */
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

/** Bytes that an unprivileged user may still write there. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
