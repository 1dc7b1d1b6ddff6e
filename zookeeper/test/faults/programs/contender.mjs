/**
 * A contender for one lock. While it holds the lock by its own check, it writes to the protected resource every millisecond or two.
 * Configured by CARILLON_TEST_CONTENDER (JSON): servers, path, recipe, id and session timeout. It sends by IPC:
 *   ready   once its client is connected.
 *   write   with its fence. Once, after it has lost the lock, it writes without a check; this write has the field `blind`.
 *   belief  after it has lost the lock: its fence, when it got the lock, when it last checked that it held it, and when it had
 *           written after that check, in ms of the system's monotonic clock. It may be stopped between check and write.
 */
import { connect, LeaderLatch, LeaderSelector, Mutex } from "../../../dist/index.js";

const { hosts, recipe, path, id, sessionTimeoutMs } = JSON.parse(process.env.CARILLON_TEST_CONTENDER ?? "");
const now = () => Number(process.hrtime.bigint()) / 1e6; // the same clock in all processes
const zk = await connect(hosts, { sessionTimeoutMs, connectTimeoutMs: 60_000 });

/**
 * Writes to the resource until the lock is lost, and then once without a check; sends the message `belief`.
 * @param holds checks, by the clock at the time of the call, whether the lock is held @param signal aborts when the lock is lost
 */
async function believe(fence, holds, signal) {
  const since = now();
  let looked = since;
  let acted = since;
  for (;;) {
    const at = now();
    if (signal.aborted || !holds()) break;
    looked = at;
    process.send({ said: "write", fence: String(fence) });
    acted = now();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  process.send({ said: "write", fence: String(fence), blind: true });
  process.send({ said: "belief", fence: String(fence), since, looked, acted });
}

process.send({ said: "ready" });
if (recipe === "latch") {
  const latch = new LeaderLatch(zk, path, { id });
  latch.listen({
    isLeader: ({ fence, signal }) => void believe(fence, () => latch.hasLeadership, signal),
  });
  await latch.start();
} else if (recipe === "selector") {
  const selector = new LeaderSelector(
    zk,
    path,
    ({ fence, signal }) => believe(fence, () => selector.hasLeadership, signal),
    { id, autoRequeue: true },
  );
  void selector.run(); // runs until the process is killed
} else {
  const mutex = new Mutex(zk, path);
  for (;;) {
    try {
      const held = await mutex.acquire();
      await believe(held.fence, () => held.held, held.signal);
    } catch (error) {
      if (error.code !== "SESSION_EXPIRED") throw error; // `acquire` waits for the next session
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}
