/** Random scenarios of tasks, policies and acts on a test tower's time, held to the docs. */
import { become } from "./become.mjs";

await become("simulation/src/policies/main.ts", { servers: ["postgres"] });
