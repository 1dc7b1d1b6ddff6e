/**
 * A process that uses a lock and nothing else, and does not look at signals itself. Told by CARILLON_TEST_LOCK (JSON): { options, name }.
 * Says `holds` once it has the lock.
 */
import { writeSync } from "node:fs";
import { carillon } from "carillon";

const { options, name } = JSON.parse(process.env.CARILLON_TEST_LOCK ?? "");
const tower = carillon(options);
await tower.lock(name).acquire();
writeSync(1, "holds\n");
setInterval(() => undefined, 1_000);
