/** Sends damaged versions of valid inputs to every part that reads foreign data. */
import { become } from "./become.mjs";

await become("fuzz/src/main.ts", { servers: ["postgres"] });
