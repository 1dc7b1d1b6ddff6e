/**
 * A process that stands in line until it is killed. Told by CARILLON_TEST_CONTENDER (JSON) where and as whom; writes
 * `ready`, then a line for each thing that happens: `leads FENCE` and `lost`.
 */
import { connect, LeaderLatch, LeaderSelector } from "../../../dist/index.js";

const { hosts, recipe, path, id, sessionTimeoutMs } = JSON.parse(process.env.CARILLON_TEST_CONTENDER ?? "");
const say = (line) => process.stdout.write(`${line}\n`);

const zk = await connect(hosts, { sessionTimeoutMs });
if (recipe === "latch") {
  const latch = new LeaderLatch(zk, path, { id });
  latch.listen({ isLeader: ({ fence }) => say(`leads ${fence}`), notLeader: () => say("lost") });
  await latch.start();
} else {
  const selector = new LeaderSelector(
    zk,
    path,
    async ({ fence, signal }) => {
      say(`leads ${fence}`);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      say("lost");
    },
    { id, autoRequeue: true },
  );
  void selector.run(); // until it is killed
}
say("ready");
