/**
 * Ten clients, of which one leads at a time. First with a latch: each client closes its latch as soon as it leads, so each leads exactly
 * once. Then with a selector: each leads several times for a moment, and requests the leadership again.
 *
 *   node examples/dist/zookeeper/ten-leaders.js HOST:PORT,HOST:PORT,… [PATH]
 */
import { connect, LeaderLatch, LeaderSelector, type ZooKeeper } from "@carillon/zookeeper";

const clients = 10;
const turnsEach = 3;

/** Lets each client lead once, one after the other. */
async function latches(all: readonly ZooKeeper[], path: string): Promise<void> {
  const led: { id: string; fence: bigint }[] = [];
  let leading = 0;
  await Promise.all(
    all.map(async (zk, index) => {
      const latch = new LeaderLatch(zk, path, { id: `client-${index}` });
      await latch.start();
      const leadership = await latch.awaitLeadership();
      if (!leadership) throw new Error("without a limit there is no end without leadership");
      if (++leading > 1) throw new Error("two lead at once");
      await onlyTheLeaderMay();
      led.push({ id: latch.id, fence: leadership.fence });
      console.log(`latch: ${latch.id} leads, fence ${leadership.fence}`);
      leading--;
      await latch.close();
    }),
  );
  expectRising(led.map(({ fence }) => fence));
  console.log(`latch: ${new Set(led.map(({ id }) => id)).size} of ${clients} led, ${led.length} times in all`);
}

/** Lets the clients lead in turn, until each has led `turnsEach` times. */
async function selectors(all: readonly ZooKeeper[], path: string): Promise<void> {
  const turns = new Map<string, number>();
  const fences: bigint[] = [];
  let leading = 0;
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const standing = all.map((zk, index) => {
    const id = `client-${index}`;
    const takeLeadership = async ({ fence }: { fence: bigint }) => {
      if (++leading > 1) throw new Error("two lead at once");
      fences.push(fence);
      turns.set(id, (turns.get(id) ?? 0) + 1);
      await onlyTheLeaderMay();
      leading--;
      if (turns.size === clients && [...turns.values()].every((count) => count >= turnsEach)) finish();
    };
    return new LeaderSelector(zk, path, takeLeadership, { id, autoRequeue: true });
  });
  const running = standing.map((selector) => selector.run());
  await Promise.race([finished, Promise.all(running)]); // A failed `run` rejects and so ends the wait.
  await Promise.all(standing.map((selector) => selector.close()));
  await Promise.all(running);
  expectRising(fences);
  console.log(`selector: ${turns.size} of ${clients} led, each ${turnsEach} times or more`);
}

/** Waits 2 ms, so that a second leader at the same time would be noticed. */
function onlyTheLeaderMay(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2));
}

function expectRising(fences: readonly bigint[]): void {
  for (const [index, fence] of fences.entries()) {
    const before = fences[index - 1];
    if (before !== undefined && fence <= before) throw new Error(`the fence went from ${before} to ${fence}`);
  }
}

const [hosts = "127.0.0.1:2181", path = "/ten-leaders"] = process.argv.slice(2);
const all = await Promise.all(Array.from({ length: clients }, () => connect(hosts)));
try {
  await latches(all, `${path}/latch`);
  await selectors(all, `${path}/selector`);
} finally {
  await Promise.all(all.map((zk) => zk.close()));
}
