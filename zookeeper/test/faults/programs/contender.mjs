/**
 * A contender for one lock, which writes to the protected resource as long as it believes that it holds the lock, every millisecond or two.
 * Configured by CARILLON_TEST_CONTENDER (JSON): where, and by which recipe. It sends by IPC:
 *   write   with its fence; `blind` when it does not check whether it still holds: once, after it has lost it
 *   belief  when it is over: its fence, since when, when it last checked and saw that it holds, and when it had written
 *           after that, in ms of the system's monotonic clock. A process may be stopped between the two.
 */
import { connect, LeaderLatch, LeaderSelector, Mutex } from "../../../dist/index.js";

const { hosts, recipe, path, id, sessionTimeoutMs } = JSON.parse(process.env.CARILLON_TEST_CONTENDER ?? "");
const now = () => Number(process.hrtime.bigint()) / 1e6; // One clock for all processes.
const zk = await connect(hosts, { sessionTimeoutMs, connectTimeoutMs: 60_000 });

/** @param holds reads the clock at that moment @param over resolves when it is notified that it is over */
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
  void selector.run(); // Until it is killed.
} else {
  const mutex = new Mutex(zk, path);
  for (;;) {
    try {
      const held = await mutex.acquire();
      await believe(held.fence, () => held.held, held.signal);
    } catch (error) {
      if (error.code !== "SESSION_EXPIRED") throw error; // The next one is on its way, and `acquire` waits for it.
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}
