/**
 * A process that uses a lock and nothing else, and does not look at signals itself. Told by CARILLON_TEST_LOCK (JSON): { options, name,
 * elect }. Says `holds` once it has the lock; or once it leads, with `elect`, by an onLead that never ends.
 */
import { writeSync } from "node:fs";
import { carillon } from "carillon";

const { options, name, elect } = JSON.parse(process.env.CARILLON_TEST_LOCK ?? "");
const tower = carillon(options);
const holds = () => writeSync(1, "holds\n");
if (elect) tower.elect(name, { onLead: () => new Promise(holds) });
else await tower.lock(name).acquire().then(holds);
setInterval(() => undefined, 1_000);
