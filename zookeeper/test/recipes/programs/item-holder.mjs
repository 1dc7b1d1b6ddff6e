/** A consumer that never finishes its first item. Configured by CARILLON_TEST_HOLDER (JSON); it prints `held TEXT`. */
import { connect, DelayQueue, Queue } from "../../../dist/index.js";

const { hosts, kind, path, lockPath, sessionTimeoutMs } = JSON.parse(process.env.CARILLON_TEST_HOLDER ?? "");
const zk = await connect(hosts, { sessionTimeoutMs });
const queue = kind === "queue" ? new Queue(zk, path, { lockPath }) : new DelayQueue(zk, path, { lockPath });
await queue.consume(
  ({ data }) => {
    process.stdout.write(`held ${data}\n`);
    return new Promise(() => undefined);
  },
  { concurrency: 1 },
);
