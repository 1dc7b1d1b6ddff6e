/**
 * A process that acquires locks, and writes to a protected table while it holds one. It checks that it holds the lock, waits, and then
 * writes, as programs do: if it is stopped between check and write, it writes when another process holds the lock. Then only the fence
 * protects the table.
 */
import { openSync, writeSync } from "node:fs";
import pg from "pg";
import { pause, systemClock } from "../../../scheduler/src/base/clock.ts";
import { silentLog } from "../../../scheduler/src/base/log.ts";
import { Carillon } from "../../../scheduler/src/library/carillon.ts";
import { type LockNote, machineMs } from "./notes.ts";

export interface WriterOrder {
  /** URL of the store, like `coordination` through this process's own proxies. */
  readonly store: string;
  readonly coordination: string | undefined;
  /** URL of the protected table's database without a proxy, so that the protected resource is always reachable. */
  readonly place: string;
  readonly schema: string;
  readonly name: string;
  readonly life: number;
  readonly fenced: boolean;
  readonly sessionTimeoutMs: number;
  /** The grace of the grace lock in ms; null if no grace lock is used. */
  readonly graceMs: number | null;
  readonly log: string;
}

const order = JSON.parse(process.argv[2] ?? "{}") as WriterOrder;
const { store, coordination, schema, name, life, fenced, sessionTimeoutMs, graceMs } = order;
const thinkMs = 40;
const writesEach = 15;
const nightlyWrites = 60;
const own = `${name} life ${life}`;
const file = openSync(order.log, "a");
const note = (one: LockNote) => writeSync(file, `${JSON.stringify(one)}\n`);

const unguarded = `insert into ${schema}.accepted (lock, fence, writer) values ($3, $1, $2)`;
const guarded = `with let_in as (update ${schema}.guard set highest = $1 where lock = $3 and highest <= $1 returning 1)
  insert into ${schema}.accepted (lock, fence, writer) select $3, $1, $2 from let_in`;

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
const place = new pg.Client({ connectionString: order.place });
await place.connect();
await tower.open();
const told = new Promise((resolve) => process.once("message", resolve));
process.send?.("ready");
await told;

let holdings = 0;
const holdingOf = () => `${own} ${++holdings}`;

/** Checks that the lock is held and logs the check with a time read before it, so that the lock was held at that time or later. */
function looks(lock: string, holding: string, held: () => boolean, fence: () => bigint | undefined): boolean {
  const atMs = machineMs();
  const node = fence();
  if (!held()) return false;
  note({ n: "look", lock, process: own, holding, fence: node === undefined ? null : Number(node), atMs });
  return true;
}

/** Writes under a fence. @returns whether the write was accepted; a refused write is recorded too */
async function write(lock: string, fence: bigint): Promise<boolean> {
  const values = [String(fence), own, lock];
  const { rowCount } = await place.query(fenced ? guarded : unguarded, values);
  if (rowCount === 1) return true;
  await place.query(`insert into ${schema}.refused (lock, fence, writer) values ($3, $1, $2)`, values);
  return false;
}

async function release(lock: string, fence: bigint, work: () => Promise<boolean>): Promise<void> {
  const its = { lock, process: own, fence: Number(fence) };
  note({ n: "releasing", ...its, atMs: machineMs() });
  note({ n: "released", ...its, changed: await work() });
}

async function pass(): Promise<never> {
  const lock = tower.lock("ledger", { fair: true });
  for (;;) {
    const askedMs = machineMs();
    const held = await lock.acquire();
    const { fence } = held;
    const holding = holdingOf();
    note({ n: "got", lock: lock.name, process: own, holding, fence: Number(fence), askedMs, atMs: machineMs() });
    const isHeld = () =>
      looks(
        lock.name,
        holding,
        () => held.held,
        () => fence,
      );
    for (let i = 0; i < writesEach && isHeld(); i++) {
      await pause(systemClock, thinkMs);
      if (!(await write(lock.name, fence))) break;
    }
    await release(lock.name, fence, () => held.release());
  }
}

/** Uses the grace lock again and again. Its owner keeps it between uses, and can take it back during a use. */
async function passNightly(grace: number): Promise<never> {
  const lock = await tower.graceLock("nightly", { grace: `${grace}ms` });
  const kind = "nightly";
  for (let turn = 0; ; turn++) {
    await pause(systemClock, 100 + 100 * Math.random());
    const askedMs = machineMs();
    const use = await lock.tryLock();
    if (!use) continue;
    const holding = holdingOf();
    note({ n: "got", lock: kind, process: own, holding, fence: Number(use.fence), askedMs, atMs: machineMs() });
    const isHeld = () =>
      looks(
        kind,
        holding,
        () => use.held,
        () => lock.fence,
      );
    for (let i = 0; i < nightlyWrites && isHeld(); i++) {
      const { fence } = use;
      await pause(systemClock, thinkMs);
      if (!(await write(kind, fence))) break;
    }
    await use.end();
    // Read the fence only now: the lock may have been lost, and taken back under another fence, while the use ended.
    if (turn % 2 === 0) await release(kind, lock.fence ?? use.fence, () => lock.release());
  }
}

await Promise.all([pass(), ...(graceMs === null ? [] : [passNightly(graceMs)])]);
