/** Runs a cluster of real processes under a steady load for hours, with one fault per minute. It starts and restarts its own PostgreSQL. */
import { become } from "./become.mjs";

await become("simulation/src/soak/main.ts");
