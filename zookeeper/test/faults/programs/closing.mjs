/**
 * A client that is closed when the message `close` arrives, during a fault that the test causes. Nothing but the client keeps this process
 * running, so the process's end shows that the client left nothing behind. Configured by CARILLON_TEST_CLOSING (JSON).
 */
import { connect, LeaderLatch } from "../../../dist/index.js";

const { hosts, path, sessionTimeoutMs, auth } = JSON.parse(process.env.CARILLON_TEST_CLOSING ?? "");
const zk = await connect(hosts, { sessionTimeoutMs, auth });
await zk.watch("/", { recursive: true });
await zk.exists(path, { watch: () => undefined });
const latch = new LeaderLatch(zk, path, { id: "closing" });
await latch.start();

process.once("message", async () => {
  const { session } = zk;
  const underWay = Promise.allSettled([zk.get("/"), zk.set("/", "x"), zk.sync("/")]);
  await zk.close();
  await Promise.all([latch.close(), underWay]);
  process.send({ said: "closed", reason: session.signal.reason?.code });
  process.disconnect();
});
process.send({ said: "ready" });
