/**
 * A process that acquires a lock or lease and holds it until it is killed. Configured by CARILLON_TEST_LOCK (JSON). It prints `held FENCE`
 * and, when the hold's signal aborts, `lost HELD`: whether the hold still counts as held.
 */
import { connect, Mutex, ReadWriteLock, Semaphore } from "../../../dist/index.js";

const { hosts, recipe, path, sessionTimeoutMs } = JSON.parse(process.env.CARILLON_TEST_LOCK ?? "");
const zk = await connect(hosts, { sessionTimeoutMs });
const locks = {
  mutex: () => new Mutex(zk, path),
  read: () => new ReadWriteLock(zk, path).read,
  write: () => new ReadWriteLock(zk, path).write,
  semaphore: () => new Semaphore(zk, path, 1),
};
const held = await locks[recipe]().acquire();
held.signal.addEventListener("abort", () => process.stdout.write(`lost ${held.held}\n`));
process.stdout.write(`held ${held.fence}\n`);
