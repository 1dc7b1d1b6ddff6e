import { copyFile, open, stat, statfs, truncate } from "node:fs/promises";
import { codeOf } from "./failure.ts";

/** The size in bytes above which the server's log is copied to `.1` and truncated. */
export const logBytes = 8 * 1024 * 1024;

export const logCheckMs = 30_000;

/**
 * If the log is larger than `logBytes`, copies it to `.1` and truncates it in place, because the server keeps the file open for
 * appending. Every process that uses the store checks the size at intervals. Lines written between copy and truncation are lost;
 * if two processes truncate at once, the older lines in `.1` may be lost too.
 */
export async function boundLog(path: string): Promise<void> {
  try {
    if ((await stat(path)).size <= logBytes) return;
    await copyFile(path, `${path}.1`);
    await truncate(path);
  } catch (error) {
    // Ignores a log that no longer exists or belongs to another user (root truncates it then). If there is no space for the copy, truncates
    // the log without one.
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

/** The number of bytes that an unprivileged user can still write in this folder. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
