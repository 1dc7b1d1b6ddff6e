/**
 * A process that takes a grace lock, and uses it until the process is killed or has lost the lock. Configured by CARILLON_TEST_GRACE
 * (JSON): { driver, where, schema, path, owner, timeoutMs, graceMs, log }. While the process believes that it holds the lock, it appends
 * the time and the fence to the log by write(2). The time is read before each check of the lock, from the system's monotonic clock, which
 * all processes share. Prints `ready`, `took FENCE FROM`, `lost`, and at SIGTERM `closed` once it has closed the lock.
 */
import { openSync, writeSync } from "node:fs";
import { carillon, GraceLockRow } from "carillon";
import { connect, GraceLock, graceLock } from "../../../../zookeeper/dist/index.js";

const order = JSON.parse(process.env.CARILLON_TEST_GRACE ?? "");
const { driver, where, schema, path, owner, timeoutMs, graceMs } = order;
const log = openSync(order.log, "a");
const say = (line) => process.stdout.write(`${line}\n`);

async function open() {
  const options = { owner, graceMs };
  if (driver === "ZooKeeper") return graceLock(await connect(where, { sessionTimeoutMs: timeoutMs }), path, options);
  // The program handles SIGTERM itself, because an instance that stopped at the signal would close the store before the lock.
  const { store } = await carillon({ store: where, schema, name: owner, handleSignals: false }).open();
  const times = { timeoutMs, beatMs: timeoutMs / 8, pollMs: 20 };
  return new GraceLock(new GraceLockRow(store.graceLocks, path, times), options);
}

const lock = await open();
process.once("SIGTERM", async () => {
  await lock.close();
  say("closed");
  process.exit();
});
say("ready");
const use = await lock.lock();
say(`took ${use.fence} ${use.takenOver?.owner ?? "nobody"}`);
use.signal.addEventListener("abort", () => say("lost"));
setInterval(() => {
  const atNs = process.hrtime.bigint();
  if (use.held) writeSync(log, `${atNs} ${use.fence} ${process.pid}\n`);
}, 3);
