/** Random workers by HTTP, held to the tables of the worker protocol. */
import { become } from "./become.mjs";

await become("simulation/src/workers/main.ts", { servers: ["postgres"] });
