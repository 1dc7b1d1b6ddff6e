/**
 * A process that only uses a lock and does not handle signals itself. Configured by CARILLON_TEST_LOCK (JSON): { options, name, elect }.
 * Prints `holds` once it has the lock; with `elect`, once it leads, with an `onLead` function that never ends.
 */
import { writeSync } from "node:fs";
import { carillon } from "carillon";

const { options, name, elect } = JSON.parse(process.env.CARILLON_TEST_LOCK ?? "");
const tower = carillon(options);
const holds = () => writeSync(1, "holds\n");
if (elect) tower.elect(name, { onLead: () => new Promise(holds) });
else await tower.lock(name).acquire().then(holds);
setInterval(() => undefined, 1_000);
