/** Runs random workers by HTTP, and compares the answers with the tables of the worker protocol. */
import { become } from "./become.mjs";

await become("simulation/src/workers/main.ts", { servers: ["postgres"] });
