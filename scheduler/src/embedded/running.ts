import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { names, port, socketName } from "./settings.ts";

/** The maximum length of a Unix socket's path, in bytes. */
const longestBytes = 103;

/**
 * The URL of a store's server if its socket exists. Does not start the server, does not wait, and does not register as a user.
 * @returns null if there is no socket, or if the path is so long that only `openEmbedded` can find it
 */
export function runningUrl(directory: string): string | null {
  const pointer = join(resolve(directory), "location");
  const home = existsSync(pointer) ? readFileSync(pointer, "utf8").trim() : resolve(directory);
  const run = join(home, "run");
  const socket = join(run, socketName);
  if (Buffer.byteLength(socket) > longestBytes || !existsSync(socket)) return null;
  return `postgres://${names.user}@localhost:${port}/${names.database}?host=${encodeURIComponent(run)}&sslmode=disable`;
}
