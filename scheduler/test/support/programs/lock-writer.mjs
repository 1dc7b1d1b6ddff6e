/**
 * A process that takes a lock and then writes to a table again and again, with its fence. It never checks whether it still holds the lock,
 * like a process that is suspended between check and write. Configured by CARILLON_TEST_LOCK (JSON): { options, name, table }. Prints
 * `ready`, `holds FENCE`, `lost` when the lock's signal aborts, and `refused` when the table refuses a write.
 */

import { carillon } from "carillon";
import pg from "pg";

const { options, name, table } = JSON.parse(process.env.CARILLON_TEST_LOCK ?? "");
const say = (line) => process.stdout.write(`${line}\n`);
const tower = carillon({ ...options, handleSignals: false });
const database = new pg.Client({ connectionString: options.store });
await database.connect();
await tower.open();
const lock = tower.lock(name, { fair: true });
say("ready");
const held = await lock.acquire();
held.signal.addEventListener("abort", () => say("lost"));
say(`holds ${held.fence}`);
for (;;) {
  const write = `update ${table} set fence = $1, pid = $2 where fence <= $1`;
  const { rowCount } = await database.query(write, [held.fence, process.pid]);
  if (rowCount === 0) break;
}
say("refused");
await tower.stop();
await database.end();
