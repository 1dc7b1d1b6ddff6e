/** Runs a whole cluster in one process, on simulated time, under faults that a seed chooses. */
import { existsSync, statfsSync } from "node:fs";
import { become } from "./become.mjs";

const memory = "/dev/shm";
const roomBytes = 4e9;

/**
 * Keeps the server's files in memory if there is room: half of a seed's cost at the server is writing files that the next seed
 * deletes.
 */
function stayInMemory() {
  if (!existsSync(memory) || process.env.TMPDIR !== undefined) return;
  const { bavail, bsize } = statfsSync(memory);
  if (bavail * bsize > roomBytes) process.env.TMPDIR = memory;
}

await become("simulation/src/main.ts", { servers: ["postgres"], before: stayInMemory });
