/** A candidate that uses Carillon's leader latch, in a process of its own. candidate.ts describes its commands and output. */
import { createInterface } from "node:readline";
import { connect, LeaderLatch } from "@carillon/zookeeper";
import type { Candidacy } from "./candidate.ts";

const { url, path, id, sessionTimeoutMs } = JSON.parse(process.argv[2] ?? "{}") as Candidacy;
const tell = (what: string, atNs = process.hrtime.bigint(), more = "") =>
  process.stdout.write(`${what} ${atNs} ${more}\n`);

const zk = await connect(url, { sessionTimeoutMs });
let latch = new LeaderLatch(zk, path, { id });
/** The time in ns of the last check at which the latch reported leadership; the time is read just before the check. */
let believedNs = 0n;

const words: Record<string, () => Promise<void>> = {
  join: async () => {
    latch = new LeaderLatch(zk, path, { id });
    latch.listen({ isLeader: ({ fence }) => tell("leads", process.hrtime.bigint(), String(fence)) });
    await latch.start();
    tell("joined");
  },
  leave: async () => {
    tell("leaving");
    await latch.close();
    tell("left");
  },
  watch: async () => {
    setInterval(() => {
      const atNs = process.hrtime.bigint();
      if (latch.hasLeadership) believedNs = atNs;
    }, 1);
  },
  belief: async () => void tell("belief", believedNs),
};

const lines = createInterface({ input: process.stdin });
lines.on("line", (word) => void words[word]?.());
lines.on("close", () => process.exit());
tell("ready");
