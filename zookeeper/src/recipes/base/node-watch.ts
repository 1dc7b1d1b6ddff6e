/**
 * Waits for one node to change, by a watch that fires once. All listeners of this process for the same node and session share the watch.
 * The last listener that gives up removes the watch: a lock that is tried every second, while another process holds it for days, must
 * not accumulate watches.
 */
import { isZooKeeperError } from "../../base/errors.ts";
import type { OnceEvent } from "../../operations/operations.ts";
import type { Session } from "../../operations/session.ts";
import type { Stat } from "../../operations/stat.ts";
import { waitFor } from "./waiting.ts";

type Listener = (event: OnceEvent) => void;

/** The watch of one path until it fires. */
interface Entry {
  readonly listeners: Set<Listener>;
  /** The same function for all listeners, because the client stores each function only once, however often the watch is set. */
  readonly fire: Listener;
}

const watched = new WeakMap<Session, Map<string, Entry>>();

/**
 * Reads the node, and calls the listener once: at the node's next change, or when the watch ends. Reads with `get`, because `exists`
 * would leave a watch on a missing node.
 * @returns undefined if there is no node; then the listener is not called
 */
export function watchNode(
  session: Session,
  path: string,
  listener: Listener,
  signal?: AbortSignal,
): Promise<{ data: Buffer; stat: Stat } | undefined> {
  return listen(session, path, listener, async (watch) => {
    try {
      return await session.get(path, { watch, signal });
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE")) throw error;
      drop(session, path, listener);
      return undefined;
    }
  });
}

/**
 * Like `watchNode`, for a node that may be missing: the listener is also called when the node is created. A path must not be watched by
 * both functions.
 */
export function watchExistence(
  session: Session,
  path: string,
  listener: Listener,
  signal?: AbortSignal,
): Promise<Stat | undefined> {
  return listen(session, path, listener, (watch) => session.exists(path, { watch, signal }));
}

async function listen<T>(
  session: Session,
  path: string,
  listener: Listener,
  read: (fire: Listener) => Promise<T>,
): Promise<T> {
  let entries = watched.get(session);
  if (!entries) {
    entries = new Map();
    watched.set(session, entries);
  }
  const entry = entries.get(path) ?? newEntry(entries, path);
  entry.listeners.add(listener);
  try {
    return await read(entry.fire);
  } catch (error) {
    unwatch(session, path, listener);
    throw error;
  }
}

function newEntry(entries: Map<string, Entry>, path: string): Entry {
  const listeners = new Set<Listener>();
  const entry: Entry = {
    listeners,
    fire: (event) => {
      if (entries.get(path) === entry) entries.delete(path);
      const all = [...listeners];
      listeners.clear();
      for (const one of all) one(event);
    },
  };
  entries.set(path, entry);
  return entry;
}

/** Removes the listener, and the watch on the server if no other listener is left; no effect if the listener has been called already. */
export function unwatch(session: Session, path: string, listener: Listener): void {
  if (!drop(session, path, listener) || !session.live) return;
  // This request is sent before later ones of the session, so it does not remove a watch that is set afterwards. If the watch does not
  // exist on the server (it fired, or was lost with its connection), the error is ignored; if the request is lost, one watch remains.
  session.removeWatches(path).catch(() => undefined);
}

/** Removes the listener without a request to the server. @returns true if it was the last listener of the path */
function drop(session: Session, path: string, listener: Listener): boolean {
  const entries = watched.get(session);
  const entry = entries?.get(path);
  if (!entry?.listeners.delete(listener) || entry.listeners.size > 0) return false;
  entries?.delete(path);
  return true;
}

/**
 * Waits until the node is deleted; returns at once if it does not exist.
 * @throws SESSION_EXPIRED and the like when the session ends before; ABORTED
 */
export async function departure(session: Session, path: string, signal?: AbortSignal): Promise<void> {
  for (;;) {
    const change = await waitFor<OnceEvent["type"]>(`the end of ${path}`, { signal }, (resolve, reject) => {
      const listener = (event: OnceEvent) => resolve(event.type);
      watchNode(session, path, listener, signal).then((node) => node ?? resolve("deleted"), reject);
      return () => unwatch(session, path, listener);
    });
    if (change === "deleted") return;
    // The node's data changed (a request for the lock writes it), or the watch was removed. The loop reads again, and the read rejects
    // if the session has ended.
  }
}
