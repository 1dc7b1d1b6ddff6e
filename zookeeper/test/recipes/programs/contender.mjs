/**
 * A contender that stays in the queue until it is killed. Configured by CARILLON_TEST_CONTENDER (JSON). It prints `ready` once a latch is
 * in the queue or a selector has started, and a line for each event: `leads FENCE`, and `lost BELIEVED`. It checks every millisecond
 * whether it leads; BELIEVED is the time of the last check that said yes, in ns of the machine's monotonic clock.
 */
import { connect, LeaderLatch, LeaderSelector } from "../../../dist/index.js";

const { hosts, recipe, path, id, sessionTimeoutMs } = JSON.parse(process.env.CARILLON_TEST_CONTENDER ?? "");
const say = (line) => process.stdout.write(`${line}\n`);

/** The time of the last check that showed that this contender leads, in ns. */
let believed = 0n;
const look = (leader) => {
  const now = process.hrtime.bigint(); // read before the check, so that a stop of the process in between cannot make it later
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
  void selector.run(); // runs until the process is killed
}
say("ready");
