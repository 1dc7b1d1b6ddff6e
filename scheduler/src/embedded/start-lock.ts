import { randomBytes } from "node:crypto";
import { link, lstat, readdir, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { pause, systemClock } from "../base/clock.ts";
import { codeOf, throwIfAborted } from "./failure.ts";

/**
 * One process at a time starts, initialises or cleans up in a folder. The kernel releases this lock when its holder dies, whichever way,
 * and wakes the waiting processes.
 *
 * The lock is a ladder of Unix sockets `start.1`, `start.2`, …: the highest rung counts, and the lock is held while a process listens on
 * it. To take the lock, a process puts a listening socket on the next rung, which only one process can do (`link` refuses an existing
 * name). To wait, it stays connected to the holder until the connection breaks. A dead holder's rung refuses connections; it stays, so
 * that numbers only grow: a process that looked long ago and climbs onto a rung that was swept away meanwhile sees a higher one and steps
 * back. The socket listens before it gets its name, so no rung is ever seen between bind and listen and taken for dead.
 *
 * Rejected: a file with a pid (numbers are reused, and mean nothing in another container, which may well share this folder), unlinking a
 * stale lock (two processes that saw the same stale lock both win), a lock on an abstract socket (another network namespace does not see
 * it), flock (Node does not have it).
 *
 * @param folder a path short enough for a Unix socket
 */
export async function holdStartLock(folder: string, signal: AbortSignal): Promise<() => Promise<void>> {
  const waiting = new Set<Socket>();
  const server = createServer((socket) => {
    waiting.add(socket);
    socket.on("error", () => socket.destroy()); // A waiting process died: there is nothing to send to it.
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
      // The last few stay: a listing taken while rungs come and go still shows one that is high enough.
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

/** The age after which a socket without a rung is removed: its process died waiting, because no process waits this long. */
const sweepMs = 600_000;

async function sweep(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!/^\.[0-9a-f]{8}$/.test(name)) continue;
    const found = await lstat(join(folder, name)).catch(() => undefined); // Its owner just removed it.
    if (found && systemClock.wall() - found.mtimeMs > sweepMs) await rm(join(folder, name), { force: true });
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    // Writable for all: the folder is private, and root and the folder's owner must be able to wait for each other.
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

/** @returns false at once when no process listens there; true once the holder released the lock */
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
  // EAGAIN: the holder's queue of waiters is full. EACCES: the socket is another user's for a moment. Either way the lock is held.
  if (end === "EAGAIN" || end === "EACCES") await pause(systemClock, 20, signal);
  else if (!["", "ENOENT", "ECONNRESET", "EPIPE"].includes(end))
    throw Object.assign(new Error(`${path}: ${end}`), { code: end });
  return true;
}
