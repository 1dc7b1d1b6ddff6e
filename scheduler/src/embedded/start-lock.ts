import { randomBytes } from "node:crypto";
import { link, lstat, readdir, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { pause, systemClock } from "../base/clock.ts";
import { codeOf, throwIfAborted } from "./failure.ts";

/**
 * Acquires the lock under which one process at a time starts, initialises or cleans up the server of a folder. The kernel releases the lock
 * when its holder dies for any reason, and wakes the waiting processes.
 *
 * The lock is a series of Unix sockets `start.1`, `start.2`, …: only the highest number counts, and the lock is held while a process
 * listens on that socket. To acquire the lock, a process links its listening socket to the next number; only one process succeeds, because
 * `link` refuses an existing name. To wait, a process stays connected to the holder until the connection breaks. The socket of a dead
 * holder refuses connections; it remains, so that numbers only increase: if a process listed the folder long ago and links a number that
 * was removed meanwhile, it sees a higher number and withdraws. A socket listens before it gets its name, so that no process mistakes it
 * for the socket of a dead holder.
 *
 * Rejected alternatives: a file with a pid (pids are reused, and mean nothing in another container that shares the folder), removing a
 * stale lock (two processes that saw the same stale lock would both succeed), a socket in the abstract namespace (invisible in another
 * network namespace), and flock (Node.js does not offer it).
 * @param folder a path short enough for a Unix socket
 * @returns a function that releases the lock
 */
export async function holdStartLock(folder: string, signal: AbortSignal): Promise<() => Promise<void>> {
  const waiting = new Set<Socket>();
  const server = createServer((socket) => {
    waiting.add(socket);
    socket.on("error", () => socket.destroy()); // a waiting process has died
    socket.on("close", () => waiting.delete(socket));
  });
  const unnamed = join(folder, `.${randomBytes(4).toString("hex")}`);
  const release = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of waiting) socket.destroy();
    await closed;
  };
  await listen(server, unnamed);
  try {
    for (;;) {
      throwIfAborted(signal);
      const top = Math.max(0, ...(await rungs(folder)));
      if (top > 0 && (await waitWhileHeld(rung(folder, top), signal))) continue;
      if (!(await climb(unnamed, rung(folder, top + 1)))) continue;
      const now = await rungs(folder);
      if (Math.max(...now) > top + 1) {
        await rm(rung(folder, top + 1), { force: true });
        continue;
      }
      await sweep(folder);
      // The last few sockets remain, so that a concurrent listing of the folder still shows a number that is high enough.
      await Promise.all(now.filter((n) => n < top - 8).map((n) => rm(rung(folder, n), { force: true })));
      return release;
    }
  } catch (error) {
    await release();
    throw error;
  } finally {
    await rm(unnamed, { force: true });
  }
}

const rung = (folder: string, n: number) => join(folder, `start.${n}`);

async function rungs(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names.flatMap((name) => (/^start\.\d+$/.test(name) ? [Number(name.slice(6))] : []));
}

/** A socket without a number that is older than this, in ms, is removed: its process has died, because no process waits this long. */
const sweepMs = 600_000;

async function sweep(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!/^\.[0-9a-f]{8}$/.test(name)) continue;
    const found = await lstat(join(folder, name)).catch(() => undefined); // the process that created the socket has just removed it
    if (found && systemClock.wall() - found.mtimeMs > sweepMs) await rm(join(folder, name), { force: true });
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    // Writable for everyone: the folder is private, and root and the folder's owner must be able to wait for each other.
    server.listen({ path, readableAll: true, writableAll: true }, () => resolve());
  });
}

async function climb(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/**
 * Waits for the holder of the lock.
 * @returns false at once if no process listens there; otherwise true when the connection has ended, or after a short pause if the holder
 * could not be connected to
 */
async function waitWhileHeld(path: string, signal: AbortSignal): Promise<boolean> {
  const end = await new Promise<string>((resolve) => {
    const socket = connect(path);
    const abort = () => socket.destroy();
    signal.addEventListener("abort", abort, { once: true });
    let code = "";
    socket.on("error", (error) => {
      code = codeOf(error);
    });
    socket.on("close", () => {
      signal.removeEventListener("abort", abort);
      resolve(code);
    });
    socket.resume();
  });
  if (end === "ECONNREFUSED") return false;
  // EAGAIN: the holder's connection queue is full. EACCES: the socket briefly belongs to another user. In both cases the lock is held.
  if (end === "EAGAIN" || end === "EACCES") await pause(systemClock, 20, signal);
  else if (!["", "ENOENT", "ECONNRESET", "EPIPE"].includes(end))
    throw Object.assign(new Error(`${path}: ${end}`), { code: end });
  return true;
}
