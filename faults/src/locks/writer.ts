/**
 * A process that wants a lock, and writes to a guarded place while it has it. It looks whether it has it, thinks, and then
 * acts, as programs do: whoever is stopped between looking and acting acts when the lock is another's. What then saves the
 * guarded place is the fence alone.
 */
import pg from "pg";
import { Carillon } from "../../../scheduler/src/carillon.ts";
import { pause, systemClock } from "../../../scheduler/src/clock.ts";
import { silentLog } from "../../../scheduler/src/log.ts";

export interface WriterOrder {
  readonly store: string;
  readonly coordination: string | undefined;
  readonly schema: string;
  readonly name: string;
  readonly fenced: boolean;
  readonly sessionTimeoutMs: number;
}

const { store, coordination, schema, name, fenced, sessionTimeoutMs } = JSON.parse(
  process.argv[2] ?? "{}",
) as WriterOrder;
const thinkMs = 40;
const writesEach = 15;

const unguarded = `insert into ${schema}.accepted (fence, writer) values ($1, $2)`;
const guarded = `with let_in as (update ${schema}.guard set highest = $1 where highest <= $1 returning 1)
  insert into ${schema}.accepted (fence, writer) select $1, $2 from let_in`;

process.on("disconnect", () => process.exit(0));
const tower = new Carillon({
  store,
  coordination,
  schema,
  name,
  sessionTimeout: sessionTimeoutMs,
  handleSignals: false,
  log: silentLog,
});
const place = new pg.Client({ connectionString: store });
await place.connect();
await tower.open();
const lock = tower.lock("ledger", { fair: true });
process.send?.("ready");
for (;;) {
  const held = await lock.acquire();
  for (let i = 0; i < writesEach && held.held; i++) {
    await pause(systemClock, thinkMs);
    const values = [String(held.fence), name];
    const { rowCount } = await place.query(fenced ? guarded : unguarded, values);
    if (rowCount === 1) continue;
    await place.query(`insert into ${schema}.refused (fence, writer) values ($1, $2)`, values);
    break;
  }
  await held.release();
}
