/**
 * Runs random scenarios of tasks, policies and actions in the virtual time of `carillon/testing`, and compares the results with the docs.
 */
import { become } from "./become.mjs";

await become("simulation/src/policies/main.ts", { servers: ["postgres"] });
