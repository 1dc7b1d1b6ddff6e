/** A whole cluster in one process, on a time of its own, under faults that a seed chooses. */
import { existsSync, statfsSync } from "node:fs";
import { become } from "./become.mjs";

const memory = "/dev/shm";
const roomBytes = 4e9;

/** Half of a seed's cost at the server is files that are gone with the next seed: they stay in memory where there is room. */
function stayInMemory() {
  if (!existsSync(memory) || process.env.TMPDIR !== undefined) return;
  const { bavail, bsize } = statfsSync(memory);
  if (bavail * bsize > roomBytes) process.env.TMPDIR = memory;
}

await become("simulation/src/main.ts", { servers: ["postgres"], before: stayInMemory });
