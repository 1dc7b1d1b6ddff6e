/** Runs a whole cluster in one process in virtual time, with faults that a seed chooses. */
import { existsSync, statfsSync } from "node:fs";
import { become } from "./become.mjs";

const memory = "/dev/shm";
const roomBytes = 4e9;

/**
 * Puts temporary files, including those of the PostgreSQL server, into memory if there is room: much of the server's work for a seed is
 * writing files that the next seed deletes.
 */
function stayInMemory() {
  if (!existsSync(memory) || process.env.TMPDIR !== undefined) return;
  const { bavail, bsize } = statfsSync(memory);
  if (bavail * bsize > roomBytes) process.env.TMPDIR = memory;
}

await become("simulation/src/main.ts", { servers: ["postgres"], before: stayInMemory });
