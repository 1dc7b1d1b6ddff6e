/**
 * A process that wants a grace lock, and uses it until it is killed or has lost it. Configured by CARILLON_TEST_GRACE (JSON): { driver,
 * where, schema, path, owner, timeoutMs, graceMs, log }. While it believes that it holds the lock, it writes time and fence to the log, by
 * write(2). The time is the system's monotonic clock, which all processes share, and is read before the check of the lock. It prints
 * `ready`, `took FENCE FROM`, `lost`, and at SIGTERM, once it has closed the lock, `closed`.
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
  // The program itself handles SIGTERM, because a Carillon that stopped on the signal would close the store first.
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
