/** Runs random remote workers, and compares the server's responses with the tables of the worker protocol. */
import { become } from "./become.mjs";

await become("simulation/src/workers/main.ts", { servers: ["postgres"] });
