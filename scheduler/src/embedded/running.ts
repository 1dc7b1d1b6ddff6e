import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { names, port, socketName } from "./settings.ts";

/** A path of a socket has no more bytes. */
const longestBytes = 103;

/**
 * Where a store's server listens, if it seems to run: for a look that must neither start it, nor wait, nor count as a user.
 * @returns null where it stands still, or lies where only `openEmbedded` finds it
 */
export function runningUrl(directory: string): string | null {
  const pointer = join(resolve(directory), "location");
  const home = existsSync(pointer) ? readFileSync(pointer, "utf8").trim() : resolve(directory);
  const run = join(home, "run");
  const socket = join(run, socketName);
  if (Buffer.byteLength(socket) > longestBytes || !existsSync(socket)) return null;
  return `postgres://${names.user}@localhost:${port}/${names.database}?host=${encodeURIComponent(run)}&sslmode=disable`;
}
