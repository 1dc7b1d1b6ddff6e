/**
 * A process that wants a lock, and once it has it writes to a table again and again, with its fence and without ever looking
 * whether it still holds the lock: as one that is stopped between looking and writing. Told by CARILLON_TEST_LOCK (JSON):
 * { options, name, table }. Says `ready`, `holds FENCE`, `lost` when it is told, `refused` when the table refuses it.
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
