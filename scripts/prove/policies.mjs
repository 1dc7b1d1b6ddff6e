/** Runs random scenarios of tasks, policies and actions on a test tower's time, and compares them with the docs. */
import { become } from "./become.mjs";

await become("simulation/src/policies/main.ts", { servers: ["postgres"] });
