/** Runs a cluster of real processes under a steady load and a fault a minute, for hours; it restarts a PostgreSQL of its own. */
import { become } from "./become.mjs";

await become("simulation/src/soak/main.ts");
