import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { names, port, socketName } from "./settings.ts";

/** The longest path of a Unix socket, in bytes. */
const longestBytes = 103;

/**
 * The URL of a store's server, if it seems to run. This check does not start the server, does not wait, and does not count as a user.
 * @returns null if the server does not run, or only `openEmbedded` can find it
 */
export function runningUrl(directory: string): string | null {
  const pointer = join(resolve(directory), "location");
  const home = existsSync(pointer) ? readFileSync(pointer, "utf8").trim() : resolve(directory);
  const run = join(home, "run");
  const socket = join(run, socketName);
  if (Buffer.byteLength(socket) > longestBytes || !existsSync(socket)) return null;
  return `postgres://${names.user}@localhost:${port}/${names.database}?host=${encodeURIComponent(run)}&sslmode=disable`;
}
