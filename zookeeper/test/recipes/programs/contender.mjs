/**
 * A process that stands in line until it is killed. Configured by CARILLON_TEST_CONTENDER (JSON). It prints `ready`, then a line for each
 * event: `leads FENCE`, and `lost BELIEVED`: the time at which it last checked whether it leads, and did, in ns of the machine's monotonic
 * clock. It checks in each turn of its event loop.
 */
import { connect, LeaderLatch, LeaderSelector } from "../../../dist/index.js";

const { hosts, recipe, path, id, sessionTimeoutMs } = JSON.parse(process.env.CARILLON_TEST_CONTENDER ?? "");
const say = (line) => process.stdout.write(`${line}\n`);

/** The result of the last check. */
let believed = 0n;
const look = (leader) => {
  const now = process.hrtime.bigint(); // It is read before the check: a stop in between must not make it later.
  if (leader.hasLeadership) believed = now;
};

const zk = await connect(hosts, { sessionTimeoutMs });
if (recipe === "latch") {
  const latch = new LeaderLatch(zk, path, { id });
  latch.listen({ isLeader: ({ fence }) => say(`leads ${fence}`), notLeader: () => say(`lost ${believed}`) });
  setInterval(() => look(latch), 1);
  await latch.start();
} else {
  const selector = new LeaderSelector(
    zk,
    path,
    async ({ fence, signal }) => {
      say(`leads ${fence}`);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      say(`lost ${believed}`);
    },
    { id, autoRequeue: true },
  );
  setInterval(() => look(selector), 1);
  void selector.run(); // Until it is killed.
}
say("ready");
