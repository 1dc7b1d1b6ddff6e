/** Good inputs spoilt, for every part that reads what others wrote. */
import { become } from "./become.mjs";

await become("fuzz/src/main.ts", { servers: ["postgres"] });
